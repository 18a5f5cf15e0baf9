// Package analyze has the commands that analyze data which users measured elsewhere. It reads their files, calls the packages that
// compute and prints what they return.
//
//	file ──scaling.ReadTable──▶ points ──scaling.Analyze──▶ text or JSON ──▶ exit code
package analyze

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/scaling"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// New returns the command analyze.
func New(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "analyze",
		Short: "Analyze your own measurements",
	}, newUSL(p))
}

// uslFlags are the flags of `analyze usl`.
type uslFlags struct {
	columns []string
	at      []string
	unit    string
	asJSON  bool
}

func newUSL(p *console.Process) *cobra.Command {
	var f uslFlags
	cmd := &cobra.Command{
		Use:   "usl FILE",
		Short: "Find where throughput stops growing with the number of workers",
		Long: "Usl fits the universal scalability law to throughput against workers: X(N) = λN / (1 + σ(N−1) + κN(N−1)). It\n" +
			"prints λ (one worker), σ (contention), κ (coherency), the peak and their 95 % intervals, or why there is no\n" +
			"answer: fewer than six different numbers of workers, a poor fit, a peak beyond twice the data.\n\n" +
			"FILE is text in columns, - is standard input: workers (N) and throughput (X), with or without headings, separated\n" +
			"by commas, semicolons, tabs, bars or blanks. Several lines may have the same number of workers. Text after # is a\n" +
			"comment. docs/guides/scaling.md explains the numbers.\n\n" +
			"Exit codes: 0 answered, 3 no answer, 65 the file has errors.",
		Example: "  bragg analyze usl sysbench.csv\n" +
			"  bragg analyze usl results.csv --columns threads,tps --at 64,128\n" +
			"  bragg analyze usl results.csv --json",
		Args: console.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return runUSL(p, args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.columns, "columns", nil, "`N,X`: names or numbers of the columns of workers and throughput")
	flags.StringSliceVar(&f.at, "at", nil, "predict the throughput of `N,...` workers, at most twice the largest measured number")
	flags.StringVar(&f.unit, "unit", "", "`UNIT` of throughput (default: the heading of its column)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func runUSL(p *console.Process, name string, f uslFlags) error {
	if len(f.columns) != 0 && len(f.columns) != 2 {
		return console.BadFlag("--columns needs two columns", "such as --columns threads,tps or --columns 1,3")
	}
	var at []float64
	for _, word := range f.at {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || !(n > 0) || n > scaling.WorkersMax {
			return console.BadFlag("--at: invalid number of workers "+strconv.Quote(word), "such as --at 64,128")
		}
		at = append(at, n)
	}
	table, err := readTable(p, name, f.columns)
	if err != nil {
		return err
	}
	a := scaling.Analyze(table.Points)
	names := table.Names(unit.FormatCount)
	if f.unit != "" {
		names.Throughput = func(v float64) string { return unit.FormatCount(v) + " " + f.unit }
	}
	answer := uslAnswer{File: name, Analysis: a, Sentence: a.Sentence(names), Density: a.Density(names), names: names}
	for _, n := range at {
		one := prediction{Workers: n}
		x, extrapolated, refused := a.Predict(n)
		if one.Refused, one.Extrapolated = refused, extrapolated; refused == nil {
			one.Throughput = &x
		}
		answer.Predictions = append(answer.Predictions, one)
	}
	if f.asJSON {
		err = p.PrintJSON(answer)
	} else {
		err = answer.print(p, &table)
	}
	if err == nil && !a.Answered() {
		err = console.ExitWith(diag.ExitUndecided)
	}
	return err
}

func readTable(p *console.Process, name string, columns []string) (scaling.Table, error) {
	in := p.Stdin
	if name != "-" {
		file, err := os.Open(p.Path(name))
		if err != nil {
			cause := err
			if inner := errors.Unwrap(err); inner != nil {
				cause = inner
			}
			return scaling.Table{}, &diag.Error{Code: "no-file", Message: "open " + strconv.Quote(name), Err: cause, Exit: diag.ExitData}
		}
		defer file.Close()
		in = file
	}
	return scaling.ReadTable(in, name, columns)
}

// uslAnswer is the answer as --json prints it.
type uslAnswer struct {
	File     string `json:"file"`
	Sentence string `json:"sentence"`
	Density  string `json:"density,omitempty"`
	*scaling.Analysis
	Predictions []prediction `json:"predictions,omitempty"`

	names scaling.Names
}

type prediction struct {
	Workers      float64           `json:"workers"`
	Throughput   *scaling.Estimate `json:"throughput,omitempty"`
	Extrapolated bool              `json:"extrapolated"`
	Refused      *scaling.Note     `json:"refused,omitempty"`
}

func (u *uslAnswer) print(p *console.Process, table *scaling.Table) error {
	var b strings.Builder
	paragraph := func(text string) { b.WriteString(console.Paragraphs(textio.Line(text), p.TextWidth()) + "\n") }
	paragraph(u.Sentence)
	if u.Density != "" {
		paragraph(u.Density)
	}
	if u.Answered() {
		for _, note := range u.Notes {
			paragraph("• " + note.Text)
		}
	}
	for _, note := range u.Refused[min(1, len(u.Refused)):] {
		paragraph("• " + note.Text)
	}
	if table.DecimalComma {
		paragraph("• Numbers were read with a decimal comma.")
	}
	if u.Fit != nil {
		u.coefficients().Section(&b)
		b.WriteString("\n" + strings.Join(u.plot(p), "\n") + "\n")
	}
	if len(u.Rows) > 0 {
		u.rows().Section(&b)
	}
	if len(u.Predictions) > 0 {
		b.WriteString("\n")
		for _, one := range u.Predictions {
			paragraph(u.predicted(one))
		}
	}
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

func (u *uslAnswer) coefficients() *console.Table {
	t := &console.Table{Head: []string{"", "VALUE", "95 % INTERVAL"}}
	number := func(v float64) string { return scaling.FormatWorkers(v) }
	add := func(name string, e *scaling.Estimate, format func(float64) string) {
		if e != nil {
			t.Add(name, format(e.Value), e.Span(format))
		}
	}
	add("λ  one worker", &u.Fit.Lambda, u.names.Throughput)
	add("σ  contention", &u.Fit.Sigma, unit.FormatPercent)
	add("κ  coherency", &u.Fit.Kappa, unit.FormatPercent)
	add("N* peak, "+u.names.Workers, u.Fit.Peak, number)
	add("X* throughput at the peak", u.Fit.PeakThroughput, u.names.Throughput)
	add("   limit", u.Fit.Limit, u.names.Throughput)
	t.Add("R²", strconv.FormatFloat(u.Fit.R2, 'f', 4, 64), fmt.Sprintf("%s, residual error %s",
		textio.Plural(u.Fit.Points, "point"), u.names.Throughput(u.Fit.ResidualError)))
	return t
}

// plotColumns is the width of the chart: wider ones only look flatter.
const plotColumns = 64

func (u *uslAnswer) plot(p *console.Process) []string {
	chart := draw.Plot{XName: textio.Line(u.names.Workers), X: scaling.FormatWorkers, Y: unit.FormatCount, YName: "throughput: ● measured, · fit"}
	for _, c := range u.Fit.Curve {
		chart.Curve = append(chart.Curve, draw.XY{X: c.Workers, Y: c.Throughput.Value})
	}
	for _, r := range u.Rows {
		chart.Points = append(chart.Points, draw.XY{X: r.Workers, Y: r.Throughput})
	}
	return chart.Lines(min(p.Width(), plotColumns), draw.Style{Color: p.Color()})
}

// rowsMax is the number of measured rows that are printed; --json has all.
const rowsMax = 16

func (u *uslAnswer) rows() *console.Table {
	t := &console.Table{Head: []string{strings.ToUpper(textio.Line(u.names.Workers)), "MEASURED", "FIT", "OFF BY", "OF LINEAR"}}
	for i, r := range u.Rows {
		// The first and the last are always among those that are printed.
		if n := len(u.Rows); n > rowsMax && i > 0 && i*(rowsMax-1)/(n-1) == (i-1)*(rowsMax-1)/(n-1) {
			continue
		}
		fit, off, share := "–", "–", "–"
		if u.Fit != nil {
			fit = unit.FormatCount(r.Fitted)
			if r.Throughput > 0 {
				off = draw.Signed(unit.FormatPercent(-r.Residual / r.Throughput))
			}
		}
		if r.Share > 0 {
			share = unit.FormatPercent(r.Share)
		}
		t.Add(scaling.FormatWorkers(r.Workers), unit.FormatCount(r.Throughput), fit, off, share)
	}
	return t
}

func (u *uslAnswer) predicted(one prediction) string {
	if one.Refused != nil {
		return one.Refused.Text
	}
	text := fmt.Sprintf("%s %s: %s (%s)", scaling.FormatWorkers(one.Workers), u.names.Workers,
		u.names.Throughput(one.Throughput.Value), one.Throughput.Span(u.names.Throughput))
	if one.Extrapolated {
		text += ", extrapolated"
	}
	return text + "."
}
