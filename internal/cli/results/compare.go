package results

import (
	"io"
	"slices"

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
	var base, others []string
	form := formChoice{names: []string{"terminal", "html", console.FormJSON}}
	cmd := &cobra.Command{
		Use:   "compare RUN RUN... | --base RUN,RUN,... --new RUN,RUN,...",
		Short: "Compare runs, or two sets of repeated runs",
		Long: "Compare draws the results of several runs on one time axis, shows the same windows side by side, and lists the\n" +
			"factors that differ. The first run is the baseline. A rehearsal cannot be compared with a full run.\n\n" +
			"Single runs cannot tell chance from change. With --base and --new, compare takes two sets of repeated runs and says of each\n" +
			"number whether it is different: its ratio with a 95 % interval, how much it varies from run to run, and the smallest\n" +
			"difference that these runs would have shown. Three runs on each side are a start, five are good.\n\n" + runref.Help,
		Example: "  bragg compare before after\n" +
			"  bragg compare monday tuesday --align nodes.PowerOff --out compare.html\n" +
			"  bragg compare --base old1,old2,old3 --new new1,new2,new3",
		RunE: func(cmd *cobra.Command, args []string) error {
			sets := len(base)+len(others) > 0
			if err := comparedArguments(cmd, args, base, others); err != nil {
				return err
			}
			name, err := form.choose(out)
			if err != nil {
				return err
			}
			all, err := readRuns(p, p.RunsDirectory(runs), slices.Concat(args, base, others))
			if err != nil {
				return err
			}
			if pseudonyms {
				if err := runref.Redact(all...); err != nil {
					return err
				}
			}
			var c *compare.Comparison
			if o := (compare.Options{AlignAt: align}); sets {
				c, err = compare.OfSets(all[:len(base)], all[len(base):], o)
			} else {
				c, err = compare.Runs(all, o)
			}
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
	flags.StringSliceVar(&base, "base", nil, "set A: `RUN,RUN,...`, repetitions of one thing")
	flags.StringSliceVar(&others, "new", nil, "set B: `RUN,RUN,...`, repetitions of the other")
	form.flags(flags, "of the comparison: terminal, html or json (default by the extension of --out, else terminal)")
	flags.StringVar(&out, "out", "", "output `FILE`; - is standard output")
	flags.BoolVar(&pseudonyms, "redact", false, "replace names and addresses of targets and machines with pseudonyms")
	p.RunsFlag(flags, &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}

// comparedArguments accepts two or more runs, or two sets.
func comparedArguments(cmd *cobra.Command, args, base, others []string) error {
	switch {
	case len(base)+len(others) == 0:
		return console.Between(2, -1)(cmd, args)
	case len(args) > 0:
		return console.BadFlag("--base and --new name all runs", "name runs either as arguments or as sets")
	case len(base) == 0 || len(others) == 0:
		return console.BadFlag("--base and --new need each other", "for example --base old1,old2,old3 --new new1,new2,new3")
	}
	return nil
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
