package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/report"
)

func newCompare(p *Process) *cobra.Command {
	var runs, format, out, align string
	var pseudonyms bool
	cmd := &cobra.Command{
		Use:   "compare RUN RUN...",
		Short: "Lay runs over each other and show what differs",
		Long: "Compare draws the results of several runs on one axis, puts the same windows side by side, and lists the\n" +
			"factors that differ. The first run is the base. A rehearsal is not compared with a full run.\n\n" + runHelp,
		Example: "  bragg compare before after\n" +
			"  bragg compare monday tuesday --align nodes.PowerOff --out compare.html",
		GroupID: groupResult,
		Args:    between(2, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := p.readRuns(p.runsDirectory(runs), args)
			if err != nil {
				return err
			}
			if pseudonyms {
				if err := redact(all...); err != nil {
					return err
				}
			}
			c, err := report.Compare(all, report.CompareOptions{AlignAt: align})
			if err != nil {
				return err
			}
			write, err := p.comparisonForm(c, format, out)
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				return write(p.Stdout)
			}
			return saveFile(p.path(out), write)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&align, "align", "", "`EVENT` that is zero on the common axis: a step or an annotation (default the start of the run phase)")
	flags.StringVar(&format, "format", "", "`FORM` of the comparison: terminal, html or json (default by the extension of --out, else terminal)")
	flags.StringVar(&out, "out", "", "`FILE` to write; - is standard output")
	flags.BoolVar(&pseudonyms, "redact", false, "replace names and addresses of targets and machines by pseudonyms")
	p.runsFlag(flags, &runs)
	cmd.ValidArgsFunction = p.completeRuns(&runs)
	return cmd
}

// readRuns reads the bundles that words name.
func (p *Process) readRuns(runs string, words []string) ([]*report.Run, error) {
	var all []*report.Run
	for _, word := range words {
		b, live, err := p.openLive(runs, word)
		if err != nil {
			return nil, err
		}
		run, err := readRun(b, live, word)
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

// comparisonForm chooses how a comparison is written.
func (p *Process) comparisonForm(c *report.Comparison, format, out string) (func(io.Writer) error, error) {
	if format == "" {
		format = formOfFile(out)
	}
	switch format {
	case "terminal":
		return func(w io.Writer) error { return c.Terminal(w, p.width(), p.Terminal && out == "") }, nil
	case "html":
		return c.HTML, nil
	case "json":
		return c.JSON, nil
	}
	return nil, badFlag("there is no form "+quote(format), "choose terminal, html or json")
}

// formOfFile chooses a form by the extension of a file.
func formOfFile(name string) string {
	for _, r := range report.Renderers() {
		if len(name) > len(r.Extension) && name[len(name)-len(r.Extension):] == r.Extension {
			return r.Name
		}
	}
	return "terminal"
}
