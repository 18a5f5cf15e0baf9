// Package cli is the command line: one file per verb. It turns flags into values, calls the packages that do the work,
// prints what they return and chooses the exit code. It decides nothing about scenarios, targets or numbers.
//
//	Main ──▶ cobra finds the verb ──▶ the verb's function ──▶ error ──▶ printed once, with its hint ──▶ exit code
//
// Everything that belongs to the process (arguments, environment, streams, signals) is handed in as a Process, so that
// tests run whole commands without starting one.
package cli

import (
	"context"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/session"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/fio/command"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/scenario"
)

// group is a heading of the verbs in the overview.
const (
	groupStart    = "start"
	groupScenario = "scenario"
	groupResult   = "result"
	groupHouse    = "house"
)

// verbs lists every verb, in the order of the overview.
var verbs = []func(*console.Process) *cobra.Command{
	newDemo,
	newScenarios,
	newLint,
	newPlan,
	newRun,
	newIO,
	newSchema,
	newDoctor,
	newReport,
	newCompare,
	newQuery,
	newRuns,
	newTargets,
	newImage,
	newClean,
	newResume,
	newCompletion,
	newVersion,
}

// Main runs one command and returns the exit code of the process.
func Main(ctx context.Context, p console.Process) int {
	p.Name = "bragg"
	if len(p.Arguments) > 0 {
		switch p.Arguments[0] {
		case hiddenAgent:
			// Agents start once per VM and are on the way to the first I/O, so nothing else is set up for them.
			return serveAgent(ctx, &p)
		case scenario.ChildVerb:
			return scenario.ChildMain(p.Stdin, p.Stdout)
		case iohosts.Verb:
			return command.ServeHost(ctx, &p, session.MemoryBytes())
		}
	}
	return p.Execute(ctx, newRoot(&p))
}

func newIO(p *console.Process) *cobra.Command {
	io := command.New(p, session.MemoryBytes())
	io.GroupID = groupStart
	return io
}

func newRoot(p *console.Process) *cobra.Command {
	root := console.HoldsVerbs(&cobra.Command{
		Use:   "bragg VERB",
		Short: "Run storage and virtualisation scenarios, and report numbers that hold up",
		Long: "Bragg runs scenarios against storage and virtualised infrastructure: it deploys groups of VMs, drives\n" +
			"load in them, does things to the platform at chosen moments, and reports how the load fared.\n\n" +
			"Begin with:  bragg demo",
	})
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here:"},
		&cobra.Group{ID: groupScenario, Title: "Scenarios:"},
		&cobra.Group{ID: groupResult, Title: "Results:"},
		&cobra.Group{ID: groupHouse, Title: "Housekeeping:"},
	)
	for _, verb := range verbs {
		root.AddCommand(verb(p))
	}
	completeFlags(p, root)
	return p.Root(root)
}
