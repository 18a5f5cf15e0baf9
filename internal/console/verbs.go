package console

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/diag"
)

// usageTemplate is what --help prints below a command's description: usage, examples, subcommands by heading, flags.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$all := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}

Commands:{{range $all}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}

{{.CommandPath}} COMMAND --help shows examples and flags.{{end}}{{if and .HasAvailableLocalFlags .HasParent}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

// Root completes the root command of a program: its help, its version and its output.
func (p *Process) Root(root *cobra.Command) *cobra.Command {
	root.Version, root.SilenceErrors, root.SilenceUsage = Version(), true, true
	root.SetVersionTemplate(VersionLine(root.Name()))
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand(root))
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(flagError)
	return root
}

// Execute runs the command that the arguments name and returns the exit code of the process.
func (p *Process) Execute(ctx context.Context, root *cobra.Command) int {
	root.SetArgs(p.Arguments)
	ctx, end := p.listen(ctx)
	defer end()
	return p.PrintError(root.ExecuteContext(ctx))
}

// Guard runs a program and turns a panic into a message and an exit code.
func (p *Process) Guard(program func() int) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = p.PrintPanic(fault)
		}
	}()
	return program()
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return UnknownCommand(found, strings.Join(rest, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// HoldsVerbs makes cmd a command that only has subcommands: alone it prints its help, and any other word is an unknown command.
func HoldsVerbs(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return UnknownCommand(cmd, args[0])
	}
	cmd.AddCommand(verbs...)
	return cmd
}

func UnknownCommand(root *cobra.Command, word string) error {
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
		Code: "unknown-command", Message: "unknown command " + strconv.Quote(word), Hint: hint, Exit: diag.ExitUsage,
	}
}

// FormJSON is the format for programs. Every command that prints data has --json; those with more than two formats also have
// --format.
const FormJSON = "json"

func JSONFlag(flags *pflag.FlagSet, asJSON *bool) {
	flags.BoolVar(asJSON, FormJSON, false, "print JSON")
}
