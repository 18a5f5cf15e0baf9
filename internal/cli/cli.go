// Package cli is the command line, with one file per command; commands for results and targets are in subpackages, bragg io is in
// fio/command. It turns flags into values, calls the packages that do the work, prints what they return and chooses the exit
// code. It has no logic for scenarios, targets or numbers.
//
//	Main ──▶ cobra finds the command ──▶ its function ──▶ error ──▶ printed once, with its hint ──▶ exit code
//
// Everything that belongs to the process (arguments, environment, streams, signals) is passed in as a Process, so that tests run
// whole commands without starting a process.
package cli

import (
	"context"

	"github.com/braggdev/bragg/internal/cli/analyze"
	"github.com/braggdev/bragg/internal/cli/doctor"
	"github.com/braggdev/bragg/internal/cli/exporter"
	"github.com/braggdev/bragg/internal/cli/results"
	"github.com/braggdev/bragg/internal/cli/targets"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/session"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/fio/command"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/scenario"
)

// verbs lists every command under its heading, in the order of the overview.
var verbs = []struct {
	heading string
	verbs   []func(*console.Process) *cobra.Command
}{
	{"Start here:", []func(*console.Process) *cobra.Command{newDemo, newScenarios, newIO, doctor.New}},
	{"Scenarios:", []func(*console.Process) *cobra.Command{newLint, newPlan, newRun, newSchema}},
	{"Results:", []func(*console.Process) *cobra.Command{results.NewReport, results.NewCompare, results.NewTrend, results.NewBaseline, results.NewQuery, results.NewRuns, analyze.New}},
	{"Housekeeping:", []func(*console.Process) *cobra.Command{
		targets.NewTargets, targets.NewImage, targets.NewKube, exporter.New, newClean, newResume, newCompletion, newVersion,
	}},
}

// Main runs one command and returns the exit code of the process.
func Main(ctx context.Context, p console.Process) int {
	p.Name = "bragg"
	return p.Guard(func() int { return dispatch(ctx, p) })
}

// dispatch runs a hidden command, started by this program or another host, or a user command.
func dispatch(ctx context.Context, p console.Process) int {
	if len(p.Arguments) > 0 {
		switch p.Arguments[0] {
		case targets.HiddenAgent:
			// Agents start once per VM and delay its first I/O, so nothing else is set up for them.
			return targets.ServeAgent(ctx, &p)
		case scenario.ChildVerb:
			return scenario.ChildMain(p.Stdin, p.Stdout)
		case iohosts.Verb:
			return command.ServeHost(ctx, &p, session.MemoryBytes())
		}
	}
	return p.Execute(ctx, newRoot(&p))
}

func newIO(p *console.Process) *cobra.Command { return command.New(p, session.MemoryBytes()) }

func newRoot(p *console.Process) *cobra.Command {
	root := console.HoldsVerbs(&cobra.Command{
		Use:   "bragg COMMAND",
		Short: "Run and report storage and virtualization scenarios",
		Long: "Bragg runs scenarios against storage and virtualized infrastructure: it deploys groups of VMs, generates\n" +
			"load in them, injects platform operations and faults, and reports the effect on the load.\n\n" +
			"Begin with:  bragg demo",
	})
	for _, group := range verbs {
		root.AddGroup(&cobra.Group{ID: group.heading, Title: group.heading})
		for _, verb := range group.verbs {
			cmd := verb(p)
			cmd.GroupID = group.heading
			root.AddCommand(cmd)
		}
	}
	completeFlags(p, root)
	return p.Root(root)
}
