// Package doctor has the command doctor, which checks the prerequisites of runs on this machine.
//
//	kernel, engines, folders, hypervisor ──examine──▶ examinations ──▶ table or JSON, and an exit code
package doctor

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// health is the state of one thing that doctor examined.
type health string

const (
	healthGood    health = "ok"
	healthLess    health = "less"    // works, with less precision, speed or fewer features
	healthMissing health = "missing" // bragg cannot run here without it
)

// examination is the result of doctor for one thing.
type examination struct {
	Name    string `json:"name"`
	Health  health `json:"health"`
	Found   string `json:"found"`
	Advice  string `json:"advice,omitempty"`  // what to do, one sentence
	Package string `json:"package,omitempty"` // Debian package that provides it
}

// New returns the command doctor.
func New(p *console.Process) *cobra.Command {
	var asJSON bool
	var runs string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check prerequisites",
		Long: "Doctor checks the prerequisites of runs on this machine and names missing ones with their Debian package.\n" +
			"It writes and removes one small file in the runs folder and changes nothing else.\n" +
			"The exit code is 69 if scenarios cannot run here.",
		Example: "  bragg doctor\n  bragg doctor --runs /mnt/ssd/runs",
		Args:    console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			found := examine(p.RunsDirectory(runs))
			code := diag.ExitPass
			for _, e := range found {
				if e.Health == healthMissing {
					code = diag.ExitUnavailable
				}
			}
			if asJSON {
				if err := p.PrintJSON(found); err != nil {
					return err
				}
				return console.ExitWith(code)
			}
			if err := printDoctor(p, found, code); err != nil {
				return err
			}
			return console.ExitWith(code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.RunsFlag(cmd.Flags(), &runs)
	return cmd
}

func printDoctor(p *console.Process, found []examination, code int) error {
	t := console.Table{Width: p.Columns()}
	for _, e := range found {
		mark := map[health]string{healthGood: "✓", healthLess: "–", healthMissing: "✗"}[e.Health]
		t.Add(mark, e.Name, e.Found)
	}
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	advised := false
	for _, e := range found {
		if e.Advice == "" && e.Package == "" {
			continue
		}
		if !advised {
			fmt.Fprintln(p.Stdout, "\nRecommendations:")
			advised = true
		}
		line := e.Advice
		if e.Package != "" {
			line += " (apt-get install " + e.Package + ")"
		}
		fmt.Fprintf(p.Stdout, "  %s: %s\n", e.Name, textio.Lines(line))
	}
	last := "This machine can run scenarios. Next: bragg demo"
	if code != diag.ExitPass {
		last = "This machine cannot run scenarios: fix the items marked ✗ first."
	}
	_, err := fmt.Fprintf(p.Stdout, "\n%s\n", last)
	return err
}
