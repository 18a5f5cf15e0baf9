package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/cli/targets"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

// shells are the supported shells, each with the function that writes its completion script.
var shells = []struct {
	name  string
	write func(p *console.Process, root *cobra.Command) error
}{
	{"bash", func(p *console.Process, root *cobra.Command) error { return root.GenBashCompletionV2(p.Stdout, true) }},
	{"zsh", func(p *console.Process, root *cobra.Command) error { return root.GenZshCompletion(p.Stdout) }},
	{"fish", func(p *console.Process, root *cobra.Command) error { return root.GenFishCompletion(p.Stdout, true) }},
	{"powershell", func(p *console.Process, root *cobra.Command) error {
		return root.GenPowerShellCompletionWithDesc(p.Stdout)
	}},
}

func newCompletion(p *console.Process) *cobra.Command {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	return &cobra.Command{
		Use:   "completion " + strings.Join(names, "|"),
		Short: "Print a shell completion script",
		Long: "Completion prints a completion script for one shell. The script queries bragg for commands and flags,\n" +
			"scenarios, presets and variables of the scenario on the line, runs and labels, targets and target files,\n" +
			"engines, formats, steps and lint rules.\n\n" +
			"bash requires the package bash-completion.",
		Example: "  source <(bragg completion bash)                      # in ~/.bashrc\n" +
			"  bragg completion zsh > \"${fpath[1]}/_bragg\"\n" +
			"  bragg completion fish > ~/.config/fish/completions/bragg.fish\n" +
			"  bragg completion powershell | Out-String | Invoke-Expression",
		Args:      console.Between(1, 1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range shells {
				if s.name == args[0] {
					return s.write(p, cmd.Root())
				}
			}
			hint := "shells are " + strings.Join(names, ", ")
			if near := diag.Nearest(args[0], names); near != "" {
				hint = "did you mean " + near + "?"
			}
			return &diag.Error{Code: "unknown-shell", Exit: diag.ExitUsage, Hint: hint,
				Message: "unknown shell " + strconv.Quote(args[0])}
		},
	}
}

// completeFlags registers the completers of flags for all commands, and disables completion of arguments, even of files, for
// commands without arguments.
func completeFlags(p *console.Process, root *cobra.Command) {
	byFlag := map[string]console.Completer{
		"target": targets.Complete(p), "preset": completePresets(p), "set": completeVariables(p),
		"engine": console.Offer(session.Catalog().Generators.OfJobFiles().Names()...), "align": console.Offer(session.Catalog().StepNames()...),
		"label": console.Offer(), "seed": console.Offer(), "rehearse": console.Offer("60s\tshort", "5m\tlonger"),
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			visit(child)
		}
		if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !cmd.DisableFlagParsing {
			cmd.ValidArgsFunction = console.Offer()
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			words, ok := byFlag[f.Name]
			if f.Name == "format" {
				words, ok = completeForms(cmd), true
			}
			if ok {
				// The only possible error is a flag that does not exist or already has a completer.
				_ = cmd.RegisterFlagCompletionFunc(f.Name, words)
			}
		})
	}
	visit(root)
}

// completeForms offers the formats of the current command.
func completeForms(cmd *cobra.Command) console.Completer {
	switch cmd.Name() {
	case "compare":
		return console.Offer("terminal", "html", "json")
	case "query":
		return console.Offer("terminal", "csv", "json")
	}
	var words []string
	for _, r := range report.Renderers() {
		words = append(words, r.Name+"\t"+r.Summary)
	}
	return console.Offer(words...)
}

// completeSteps offers the arguments of schema: two schemas, the list of steps, and each step.
func completeSteps(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := []string{"scenario", "target", "steps"}
	for _, kind := range session.Catalog().Steps {
		words = append(words, kind.Name+"\t"+kind.Summary)
	}
	return console.Offer(words...)(nil, args, begun)
}

// completeLint offers scenarios, or rules after --rules.
func completeLint(rules *bool) console.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if !*rules {
			return completeScenarios(cmd, args, begun)
		}
		var words []string
		for _, r := range lint.Rules() {
			words = append(words, r.Code+"\t"+r.Summary)
		}
		return console.Offer(words...)(cmd, args, begun)
	}
}

func completeScenarios(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	names, err := shipped()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return console.Fitting(names, args, begun), cobra.ShellCompDirectiveDefault // a path, if no name matches
}

// onLine reads the first scenario on the line; nil if there is none or none of it can be read. A scenario with errors is returned
// as far as it could be read, because completion shows no errors.
func onLine(p *console.Process, cmd *cobra.Command, args []string) *scenario.Scenario {
	if len(args) == 0 {
		return nil
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	sc, _ := loadScenario(ctx, p, args[0], &choice{})
	return sc
}

func completePresets(p *console.Process) console.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		sc := onLine(p, cmd, args)
		if sc == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return console.Fitting(sc.Presets, nil, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeVariables offers NAME= and, after it, the values that the scenario lists.
func completeVariables(p *console.Process) console.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		sc := onLine(p, cmd, args)
		if sc == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names, values []string
		for _, v := range sc.Variables {
			if v.Hidden {
				continue
			}
			names = append(names, v.Name+"=\t"+strings.Join(strings.Fields(v.DisplayName), " "))
			for _, o := range v.Options {
				values = append(values, fmt.Sprintf("%s=%v", v.Name, o))
			}
		}
		if strings.Contains(begun, "=") {
			return console.Fitting(values, nil, begun), cobra.ShellCompDirectiveNoFileComp
		}
		return console.Fitting(names, nil, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
