package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// reportFlags are the flags of `report`.
type reportFlags struct {
	runs, out, junit string
	form             formChoice
	redact           bool
}

// NewReport returns the command report.
func NewReport(p *console.Process) *cobra.Command {
	f := reportFlags{form: formChoice{names: rendererNames()}}
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Report a run: terminal, HTML, JSON, CSV or JUnit",
		Long: "Report reads the bundle of a run. Without --format it prints the results and writes the HTML report to the\n" +
			"folder of the run. The exit code is that of the run: 0 pass, 1 a threshold missed, 3 undecided.\n\n" +
			"Formats:\n" + formatList() + "\n" + runref.Help,
		Example: "  bragg report last\n" +
			"  bragg report last --junit results.xml\n" +
			"  bragg report last --format html --out report.html\n" +
			"  bragg report nightly --format json | jq -r .verdict\n" +
			"  bragg report last --redact --out for-the-vendor.html",
		Args: console.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return printForm(p, args[0], f)
		},
	}
	flags := cmd.Flags()
	f.form.flags(flags, "of the report (default by the extension of --out, else html)")
	flags.StringVar(&f.out, "out", "", "output `FILE`; - is standard output")
	flags.StringVar(&f.junit, "junit", "", "also write JUnit test cases to `FILE`")
	flags.BoolVar(&f.redact, "redact", false, "replace names and addresses of the target and this machine with pseudonyms")
	p.RunsFlag(flags, &f.runs)
	cmd.ValidArgsFunction = runref.Complete(p, &f.runs)
	return cmd
}

func rendererNames() []string {
	var names []string
	for _, r := range report.Renderers() {
		names = append(names, r.Name)
	}
	return names
}

func formatList() string {
	var b strings.Builder
	for _, r := range report.Renderers() {
		fmt.Fprintf(&b, "  %-11s %s\n", r.Name, r.Summary)
	}
	return b.String()
}

// Print prints the numbers of a run and writes its page, as bragg report RUN does; asJSON prints only the JSON report.
func Print(p *console.Process, runs, word string, asJSON bool) error {
	return printForm(p, word, reportFlags{runs: runs, form: formChoice{json: asJSON}})
}

func printForm(p *console.Process, word string, f reportFlags) error {
	form, err := f.form.choose(f.out)
	if err != nil {
		return err
	}
	b, live, err := runref.OpenLive(p, p.RunsDirectory(f.runs), word)
	if err != nil {
		return err
	}
	defer b.Close()
	run, err := runref.Read(b, live, word)
	if err != nil {
		return err
	}
	if f.redact {
		if err := runref.Redact(run); err != nil {
			return err
		}
	}
	if f.junit != "" {
		if err := SaveJUnit(p, f.junit, []report.Ran{{Run: run}}); err != nil {
			return err
		}
	}
	if form == "" && f.out == "" {
		return reportHere(p, b, run, f.redact)
	}
	renderer := report.Renderers()[0]
	if form != "" {
		if renderer, err = report.RendererByName(form); err != nil {
			return err
		}
	}
	if err := renderRun(p, renderer, run, f.out); err != nil {
		return err
	}
	return console.ExitWith(run.Summary.ExitCode())
}

// reportHere prints the numbers and writes the HTML report into the run's folder.
func reportHere(p *console.Process, b *result.Bundle, run *document.Run, redact bool) error {
	if err := report.Terminal(p.Stdout, run, p.Width(), p.Color()); err != nil {
		return err
	}
	name := "report.html"
	if redact {
		name = "report-redacted.html"
	}
	err := WriteHTML(b, name, run)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		fmt.Fprintf(p.Stderr, "bragg: the folder of the run is read-only: HTML report not written; choose a file with --out FILE\n")
	case err != nil:
		return err
	default:
		if _, err := fmt.Fprintf(p.Stdout, "\nreport: %s\n", textio.Lines(filepath.Join(b.Dir(), name))); err != nil {
			return err
		}
	}
	return console.ExitWith(run.Summary.ExitCode())
}

// renderRun writes one format to a file, or to standard output.
func renderRun(p *console.Process, r report.Renderer, run *document.Run, out string) error {
	if out == "" || out == "-" {
		w := bufio.NewWriter(p.Stdout)
		options := report.Options{Width: p.Width(), Color: p.Color()}
		if err := r.Render(w, run, options); err != nil {
			return err
		}
		return w.Flush()
	}
	return saveFile(p.Path(out), func(w io.Writer) error { return r.Render(w, run, report.Options{}) })
}

// SaveJUnit writes a suite for each scenario of a queue.
func SaveJUnit(p *console.Process, path string, all []report.Ran) error {
	return saveFile(p.Path(path), func(w io.Writer) error { return report.JUnitOf(w, all) })
}

// WriteHTML writes the report of a run as a page into its folder, which may have been made by others: a link there is replaced.
func WriteHTML(b *result.Bundle, name string, run *document.Run) error {
	return b.ReplaceFile(name, func(w io.Writer) error { return page.HTML(w, run) })
}

// saveFile replaces a file that the user named atomically; a link leads to it. A file that is not regular, like /dev/stdout, is written
// in place.
func saveFile(path string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return result.ReplaceFile(path, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}
