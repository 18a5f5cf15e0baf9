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
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/scenario"
)

// Process is the state of the operating system's process as the command line sees it.
type Process struct {
	Arguments  []string // without the program's name
	Getenv     func(string) string
	Directory  string // that relative paths start from
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Terminal   bool                       // Stdout is a terminal that a live view may be drawn on
	Size       func() (columns, rows int) // of that terminal; nil: not known
	Signals    <-chan os.Signal           // interrupt and terminate; nil: none
	Executable string                     // path of this program, started again for hidden verbs
	Exit       func(code int)             // ends the process at once, after a third signal
	Leases     string                     // which leases of machines exclude each other; "": those of all controllers
}

// group is a heading of the verbs in the overview.
const (
	groupStart    = "start"
	groupScenario = "scenario"
	groupResult   = "result"
	groupHouse    = "house"
)

// verbs lists every verb, in the order of the overview.
var verbs = []func(*Process) *cobra.Command{
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
	newLab,
	newImage,
	newClean,
	newResume,
	newCompletion,
	newVersion,
}

// Main runs one command and returns the exit code of the process.
func Main(ctx context.Context, p Process) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = p.printPanic(fault)
		}
	}()
	if len(p.Arguments) > 0 && p.Arguments[0] == hiddenAgent {
		// Agents start once per VM and are on the way to the first I/O, so nothing else is set up for them.
		return p.serveAgent(ctx)
	}
	if len(p.Arguments) == 1 && p.Arguments[0] == scenario.ChildVerb {
		return scenario.ChildMain(p.Stdin, p.Stdout)
	}
	if len(p.Arguments) > 0 && p.Arguments[0] == iohosts.Verb {
		return p.serveHost(ctx)
	}
	if lab.Started(p.Arguments) {
		return lab.Main(p.Arguments[1:])
	}
	root := newRoot(&p)
	root.SetArgs(p.Arguments)
	return p.printError(root.ExecuteContext(ctx))
}

func newRoot(p *Process) *cobra.Command {
	root := holdsVerbs(&cobra.Command{
		Use:   "bragg VERB",
		Short: "Run storage and virtualisation scenarios, and report numbers that hold up",
		Long: "Bragg runs scenarios against storage and virtualised infrastructure: it deploys groups of VMs, drives\n" +
			"load in them, does things to the platform at chosen moments, and reports how the load fared.\n\n" +
			"Begin with:  bragg demo",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetVersionTemplate(versionLine())
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here:"},
		&cobra.Group{ID: groupScenario, Title: "Scenarios:"},
		&cobra.Group{ID: groupResult, Title: "Results:"},
		&cobra.Group{ID: groupHouse, Title: "Housekeeping:"},
	)
	for _, verb := range verbs {
		root.AddCommand(verb(p))
	}
	setHelp(root)
	p.complete(root)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	return root
}

// holdsVerbs makes cmd one that only holds others: alone it prints its help, and another word is an unknown command.
func holdsVerbs(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.AddCommand(verbs...)
	return cmd
}

func unknownCommand(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	hint := root.CommandPath() + " --help lists the commands"
	if near := diag.Nearest(word, names); near != "" {
		hint = "did you mean \"" + root.CommandPath() + " " + near + "\"?"
	}
	return &diag.Error{
		Code: "unknown-command", Message: "unknown command " + quote(word), Hint: hint, Exit: diag.ExitUsage,
	}
}
