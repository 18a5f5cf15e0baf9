package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/textio"
)

func newLint(p *console.Process) *cobra.Command {
	var c choice
	var asJSON, rules bool
	cmd := &cobra.Command{
		Use:   "lint SCENARIO|FILE...",
		Short: "Check scenarios and vdbench parameter files for errors and likely mistakes",
		Long: "Lint checks scenarios and their job files for errors that a plan refuses, for mistakes that distort results,\n" +
			"and for other notable facts. It needs no target and runs nothing. The exit code is 65 if a scenario has errors\n" +
			"and 0 if it has only warnings. docs/guides/lint.md describes the rules.\n\n" +
			"FILE is the path of a parameter file of vdbench: what is wrong in it and what the native engine does not run, by line.\n\n" + scenarioHelp,
		Example: "  bragg lint ./my_scenario\n  bragg lint four_corners vdi --json\n  bragg lint ./mix.parm --set disk=/dev/sdb\n  bragg lint --rules\n  bragg lint --rules read-without-data",
		Args: func(cmd *cobra.Command, args []string) error {
			if rules {
				return nil
			}
			return console.Between(1, -1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules {
				return printRules(p, args, asJSON)
			}
			var all []linted
			for _, word := range args {
				check := lintOne
				if isParameterFile(p, word) {
					check = lintParameters
				}
				one, err := check(cmd.Context(), p, word, &c)
				if err != nil {
					return err
				}
				all = append(all, one)
			}
			if asJSON {
				if err := p.PrintJSON(all); err != nil {
					return err
				}
				return console.ExitWith(lintedCode(all))
			}
			return printLinted(p, all)
		},
		ValidArgsFunction: completeLint(&rules),
	}
	c.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings, or the rules, as JSON")
	cmd.Flags().BoolVar(&rules, "rules", false, "list all rules, or describe the named rules")
	return cmd
}

// linted is the result of lint for one scenario or parameter file.
type linted struct {
	Scenario string            `json:"scenario"`         // or the path of the file
	Errors   diag.List         `json:"errors,omitempty"` // why it cannot be read
	Findings []finding.Finding `json:"findings"`
	Runs     []string          `json:"runs,omitempty"` // of a parameter file

	document *scenario.Scenario
	file     bool // a parameter file
}

// lintOne checks one scenario. A scenario that cannot be read is also a result, so that the others are still checked.
func lintOne(ctx context.Context, p *console.Process, word string, c *choice) (linted, error) {
	one := linted{Scenario: word, Findings: []finding.Finding{}}
	sc, err := loadScenario(ctx, p, word, c)
	var list *diag.ListError
	if errors.As(err, &list) {
		one.Errors = list.List
		if sc != nil {
			one.document = sc
			one.Errors = append(one.Errors, lint.Faults(sc, session.Catalog())...)
		}
		return one, nil
	}
	if err != nil {
		return one, err
	}
	one.document = sc
	one.Findings = append(one.Findings, lint.Check(sc, session.Catalog())...)
	return one, nil
}

func lintedCode(all []linted) int {
	for _, one := range all {
		if one.Errors.HasErrors() || finding.ExitCode(one.Findings) == diag.ExitFailed {
			return diag.ExitData
		}
	}
	return diag.ExitPass
}

func printLinted(p *console.Process, all []linted) error {
	counts := map[diag.Severity]int{}
	for _, one := range all {
		list := append(diag.List{}, one.Errors...)
		for _, f := range one.Findings {
			d := lint.Diagnostic(f, one.document)
			d.Pos.File = cmp.Or(d.Pos.File, one.Scenario)
			list.Add(d)
		}
		if err := diag.Render(p.Stdout, list); err != nil {
			return err
		}
		for _, d := range list {
			counts[d.Severity]++
		}
	}
	summary := "no problems"
	if len(counts) > 0 {
		summary = fmt.Sprintf("%s, %s, %s", textio.Plural(counts[diag.SeverityError], "error"),
			textio.Plural(counts[diag.SeverityWarning], "warning"), textio.Plural(counts[diag.SeverityNote], "note"))
	}
	if _, err := fmt.Fprintf(p.Stdout, "%s: %s\n", lintedCount(all), summary); err != nil {
		return err
	}
	return console.ExitWith(lintedCode(all))
}

// lintedCount says what was checked.
func lintedCount(all []linted) string {
	runs, files := 0, 0
	for _, one := range all {
		if one.file {
			runs, files = runs+len(one.Runs), files+1
		}
	}
	scenarios := textio.Plural(len(all)-files, "scenario")
	if files == 0 {
		return scenarios
	}
	text := fmt.Sprintf("%s with %s", textio.Plural(files, "parameter file"), textio.Plural(runs, "run"))
	if files < len(all) {
		text = scenarios + ", " + text
	}
	return text
}

// ruleLine is a rule as `lint --rules --json` prints it.
type ruleLine struct {
	Rule     string           `json:"rule"`
	Severity finding.Severity `json:"severity"`
	Summary  string           `json:"summary"`
	Doc      string           `json:"doc"`
}

// printRules lists the rules, or describes those that are named.
func printRules(p *console.Process, names []string, asJSON bool) error {
	rules, err := namedRules(names)
	if err != nil {
		return err
	}
	if asJSON {
		lines := []ruleLine{}
		for _, r := range rules {
			lines = append(lines, ruleLine{r.Code, r.Severity, r.Summary, r.Doc})
		}
		return p.PrintJSON(lines)
	}
	if len(names) == 0 {
		t := console.Table{Head: []string{"RULE", "SEVERITY", "WHAT IS WRONG"}, Width: p.Columns()}
		for _, r := range rules {
			t.Add(r.Code, string(r.Severity), r.Summary)
		}
		return t.Print(p.Stdout)
	}
	for i, r := range rules {
		if i > 0 {
			fmt.Fprintln(p.Stdout)
		}
		if _, err := fmt.Fprintln(p.Stdout, console.Paragraphs(fmt.Sprintf("%s (%s): %s\n\n%s", r.Code, r.Severity, r.Summary, r.Doc), p.TextWidth())); err != nil {
			return err
		}
	}
	return nil
}

// namedRules returns the rules of these names in their order, all without names.
func namedRules(names []string) ([]lint.Rule, error) {
	all := lint.Rules()
	if len(names) == 0 {
		return all, nil
	}
	var out []lint.Rule
	for _, name := range names {
		at := slices.IndexFunc(all, func(r lint.Rule) bool { return r.Code == name })
		if at >= 0 {
			out = append(out, all[at])
			continue
		}
		var codes []string
		for _, r := range all {
			codes = append(codes, r.Code)
		}
		hint := "bragg lint --rules lists them"
		if near := diag.Nearest(name, codes); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, &diag.Error{Code: "unknown-rule", Message: "unknown rule " + strconv.Quote(name), Hint: hint, Exit: diag.ExitUsage}
	}
	return out, nil
}
