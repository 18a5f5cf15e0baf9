package results

import (
	"io"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/report"
)

// NewCompare returns the command compare.
func NewCompare(p *console.Process) *cobra.Command {
	var runs, out, align string
	var pseudonyms bool
	form := formChoice{names: []string{"terminal", "html", console.FormJSON}}
	cmd := &cobra.Command{
		Use:   "compare RUN RUN...",
		Short: "Compare two or more runs",
		Long: "Compare draws the results of several runs on one time axis, shows the same windows side by side, and lists the\n" +
			"factors that differ. The first run is the baseline. A rehearsal cannot be compared with a full run.\n\n" + runref.Help,
		Example: "  bragg compare before after\n" +
			"  bragg compare monday tuesday --align nodes.PowerOff --out compare.html",
		Args: console.Between(2, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := form.choose(out)
			if err != nil {
				return err
			}
			all, err := readRuns(p, p.RunsDirectory(runs), args)
			if err != nil {
				return err
			}
			if pseudonyms {
				if err := runref.Redact(all...); err != nil {
					return err
				}
			}
			c, err := compare.Runs(all, compare.Options{AlignAt: align})
			if err != nil {
				return err
			}
			write := comparisonForm(p, c, name, out)
			if out == "" || out == "-" {
				return write(p.Stdout)
			}
			return saveFile(p.Path(out), write)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&align, "align", "", "`EVENT` at time zero: a step or an annotation (default: start of the run phase)")
	form.flags(flags, "of the comparison: terminal, html or json (default by the extension of --out, else terminal)")
	flags.StringVar(&out, "out", "", "output `FILE`; - is standard output")
	flags.BoolVar(&pseudonyms, "redact", false, "replace names and addresses of targets and machines with pseudonyms")
	p.RunsFlag(flags, &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}

// readRuns reads the bundles that words name.
func readRuns(p *console.Process, runs string, words []string) ([]*document.Run, error) {
	var all []*document.Run
	for _, word := range words {
		b, live, err := runref.OpenLive(p, runs, word)
		if err != nil {
			return nil, err
		}
		run, err := runref.Read(b, live, word)
		if closeErr := b.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// comparisonForm returns the function that writes a comparison in the named format.
func comparisonForm(p *console.Process, c *compare.Comparison, name, out string) func(io.Writer) error {
	switch name {
	case "html":
		return func(w io.Writer) error { return report.ComparisonHTML(w, c) }
	case console.FormJSON:
		return c.JSON
	}
	return func(w io.Writer) error { return report.ComparisonTerminal(w, c, p.Width(), p.Color() && out == "") }
}
