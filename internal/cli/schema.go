package cli

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

func newSchema(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "schema [scenario|target|steps]",
		Short: "Print JSON Schemas, or describe steps",
		Long: "Schema prints the JSON Schema of test.yml (the default) or of target files, for editors and validators.\n" +
			"With steps it lists every step with its arguments; with the name of a step it describes that step.",
		Example: "  bragg schema scenario > test.schema.json\n" +
			"  bragg schema target\n" +
			"  bragg schema steps\n" +
			"  bragg schema workload.Start",
		Args:              console.Between(0, 1),
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
				return printSteps(p, asJSON)
			}
			return printStep(p, what, asJSON)
		},
	}
	console.JSONFlag(cmd.Flags(), &asJSON)
	return cmd
}

// stepLine is a step as `schema steps --json` and `schema STEP --json` print it.
type stepLine struct {
	Step      string              `json:"step"`
	Summary   string              `json:"summary"`
	Doc       string              `json:"doc"`
	Needs     []target.Capability `json:"needs"` // capabilities that the target must have
	Arguments []argumentLine      `json:"arguments"`
	Example   string              `json:"example"` // a whole test.yml
}

type argumentLine struct {
	Argument string `json:"argument"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Default  string `json:"default"` // as written in a scenario; "": none
	Doc      string `json:"doc"`
}

func lineOfStep(kind verb.Kind) stepLine {
	line := stepLine{Step: kind.Name, Summary: kind.Summary, Doc: kind.Doc, Needs: kind.Needs, Arguments: []argumentLine{}, Example: kind.Example}
	if line.Needs == nil {
		line.Needs = []target.Capability{}
	}
	for _, a := range kind.Arguments() {
		line.Arguments = append(line.Arguments, argumentLine{a.Name, a.Type, a.Required, a.Default, a.Doc})
	}
	return line
}

func printSteps(p *console.Process, asJSON bool) error {
	if asJSON {
		lines := []stepLine{}
		for _, kind := range session.Catalog().Steps {
			lines = append(lines, lineOfStep(kind))
		}
		return p.PrintJSON(lines)
	}
	t := console.Table{Head: []string{"STEP", "WHAT IT DOES"}, Width: p.Columns()}
	for _, kind := range session.Catalog().Steps {
		t.Add(kind.Name, kind.Summary)
	}
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprint(p.Stdout, "\nDescribe a step with its arguments and an example: bragg schema STEP\n")
	return err
}

func printStep(p *console.Process, name string, asJSON bool) error {
	catalog := session.Catalog()
	kind, ok := catalog.Kind(name)
	if !ok {
		words := append([]string{"scenario", "target", "steps"}, catalog.StepNames()...)
		e := &diag.Error{
			Code: "unknown-schema", Message: "unknown schema or step " + strconv.Quote(name), Exit: diag.ExitUsage,
			Hint: "choose scenario, target or steps; bragg schema steps lists the steps",
		}
		if near := diag.Nearest(name, words); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return e
	}
	if asJSON {
		return p.PrintJSON(lineOfStep(kind))
	}
	fmt.Fprintln(p.Stdout, console.Paragraphs(fmt.Sprintf("%s — %s\n\n%s", kind.Name, kind.Summary, kind.Doc), p.TextWidth()))
	if len(kind.Needs) > 0 {
		fmt.Fprintf(p.Stdout, "\nRequired target capabilities: %v\n", kind.Needs)
	}
	if err := printArguments(p, kind); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "\nExample:\n\n%s", kind.Example)
	return err
}

func printArguments(p *console.Process, kind verb.Kind) error {
	arguments := kind.Arguments()
	if len(arguments) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "\nNo arguments.")
		return err
	}
	t := console.Table{Head: []string{"ARGUMENT", "TYPE", "DEFAULT", "MEANING"}, Width: p.Columns()}
	for _, a := range arguments {
		byDefault := cmp.Or(a.Default, "–")
		if a.Required {
			byDefault = "required"
		}
		t.Add(a.Name, a.Type, byDefault, a.Doc)
	}
	fmt.Fprintln(p.Stdout)
	return t.Print(p.Stdout)
}
