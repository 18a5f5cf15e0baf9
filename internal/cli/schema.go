package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/target"
)

func newSchema(p *Process) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [scenario|target|steps]",
		Short: "Print the JSON Schema of scenarios or target files, or describe all steps",
		Long: "Schema prints a JSON Schema for editors and checkers: that of test.yml (the default) or of target files.\n" +
			"With steps it lists every step with its arguments; with the name of a step it describes that one.",
		Example: "  bragg schema scenario > test.schema.json\n" +
			"  bragg schema target\n" +
			"  bragg schema steps\n" +
			"  bragg schema workload.Start",
		GroupID:           groupScenario,
		Args:              between(0, 1),
		ValidArgsFunction: completeSteps,
		RunE: func(_ *cobra.Command, args []string) error {
			what := "scenario"
			if len(args) == 1 {
				what = args[0]
			}
			switch what {
			case "scenario":
				_, err := p.Stdout.Write(scenario.Schema())
				return err
			case "target":
				_, err := p.Stdout.Write(target.Schema())
				return err
			case "steps":
				return p.printSteps()
			}
			return p.printStep(what)
		},
	}
}

func (p *Process) printSteps() error {
	t := table{head: []string{"STEP", "WHAT IT DOES"}}
	for _, kind := range session.Catalog().Steps {
		t.add(kind.Name, kind.Summary)
	}
	if err := t.print(p.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprint(p.Stdout, "\nbragg schema STEP describes one with its arguments and an example.\n")
	return err
}

func (p *Process) printStep(name string) error {
	catalog := session.Catalog()
	kind, ok := catalog.Kind(name)
	if !ok {
		words := append([]string{"scenario", "target", "steps"}, catalog.StepNames()...)
		e := &diag.Error{
			Code: "unknown-schema", Message: "there is no schema and no step " + quote(name), Exit: diag.ExitUsage,
			Hint: "choose scenario, target or steps; bragg schema steps lists the steps",
		}
		if near := diag.Nearest(name, words); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return e
	}
	fmt.Fprintf(p.Stdout, "%s — %s\n\n%s\n", kind.Name, kind.Summary, paragraphs(kind.Doc))
	if len(kind.Needs) > 0 {
		fmt.Fprintf(p.Stdout, "\nThe target must offer: %v\n", kind.Needs)
	}
	if err := p.printArguments(kind); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "\nExample:\n\n%s", kind.Example)
	return err
}

func (p *Process) printArguments(kind run.Kind) error {
	arguments := kind.Arguments()
	if len(arguments) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "\nIt takes no argument.")
		return err
	}
	t := table{head: []string{"ARGUMENT", "TYPE", "DEFAULT", "MEANING"}}
	for _, a := range arguments {
		byDefault := firstOf(a.Default, "–")
		if a.Required {
			byDefault = "required"
		}
		t.add(a.Name, a.Type, byDefault, a.Doc)
	}
	fmt.Fprintln(p.Stdout)
	return t.print(p.Stdout)
}
