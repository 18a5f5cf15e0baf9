package report

import (
	"fmt"
	"io"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
)

// Every run has a colour of its own.
const _ = uint(page.ColorsMax - compare.RunsMax)

// comparisonView is the input of the comparison template.
type comparisonView struct {
	page.Shell
	Of          *compare.Comparison
	Differences draw.Table
	Note        string // below the differences or numbers
	Colors      []int  // of the runs
	Gate        []gateLine
	Sets        draw.Table
	Counts      draw.Table
	Costs       draw.Table // of events
	CostsNote   string
	Scaling     draw.Table
	ScalingNote string
	Factors     draw.Table
	Same        string // shown if no factor differs
	Loads       draw.Table
	PerCPU      draw.Table
	PerCPUNote  string
	Figures     []comparedFigure
}

// gateLine is one check of a gate, and the class of its colour.
type gateLine struct{ Class, Text string }

var gateClasses = map[compare.Outcome]string{compare.Passed: "info", compare.Failed: "fail", compare.Undecided: "undecided"}

// gateLines are the checks of a gate; none without one.
func gateLines(g *compare.Gate) (list []gateLine) {
	for i := 0; g != nil && i < len(g.Checks); i++ {
		list = append(list, gateLine{gateClasses[g.Checks[i].Outcome], gateText(&g.Checks[i])})
	}
	return list
}

// comparedFigure is one result in all runs, as the page shows it.
type comparedFigure struct {
	ID        string
	Result    *compare.Result
	Label     string
	Caption   string
	Zero      string
	Drawn     bool
	Log       bool
	Long      bool
	Many      bool
	Reduced   bool
	Rehearsal bool
	Groups    []comparedGroup
}

// comparedGroup is one series over one window: a row for each run, then ratio and difference of every further run.
type comparedGroup struct {
	Window, Series string
	Rows           []comparedLineView
}

type comparedLineView struct {
	Name   string
	Versus bool
	Cells  []string
}

// ComparisonHTML writes the comparison as one self-contained page.
func ComparisonHTML(w io.Writer, c *compare.Comparison) error {
	view, err := viewOf(page.Readable(c))
	if err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	if err := page.Templates().ExecuteTemplate(w, "page", view); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func viewOf(c *compare.Comparison) (*comparisonView, error) {
	v := &comparisonView{Of: c, Differences: differenceTable(c), Note: differencesNote, Factors: factorTable(c), Same: factorsSame, Loads: loadTable(c), PerCPU: perCPUTable(c), PerCPUNote: perCPUNote,
		Costs: costsTable(c), CostsNote: costsNote(c), Scaling: scalingTable(c), ScalingNote: scalingSingle}
	heading := fmt.Sprintf("Comparison of %d runs of %s", len(c.Runs), c.Runs[0].Title)
	if c.Sets != nil {
		v.Loads, v.ScalingNote = draw.Table{}, ""
		v.Sets, v.Counts, v.Note = setsTable(c.Sets), countsTable(c), setsNote
		heading = setsTitle(c) + " of " + c.Runs[0].Title
	}
	v.Gate = gateLines(c.Gate)
	data := page.PageData{Marks: comparisonMarks(c)}
	for i := range c.Runs {
		v.Colors = append(v.Colors, colorOf(c, i))
	}
	for i := range c.Results {
		f, ch := resultView(c, i)
		v.Figures = append(v.Figures, f)
		if f.Drawn {
			data.Charts = append(data.Charts, ch)
		}
	}
	var err error
	v.Shell, err = page.NewShell(heading, c.Rehearsal != nil, data)
	v.Comparison = true
	return v, err
}

// comparisonMarks has the events of all runs. Only those of the first run are labelled; the others are lines in the run's colour.
func comparisonMarks(c *compare.Comparison) []page.PageMark {
	var list []page.PageMark
	for i, r := range c.Runs {
		color := colorOf(c, i)
		for _, m := range r.Marks {
			list = append(list, page.PageMark{Number: m.Number, At: float64(m.AtNanos) / 1e9, Label: m.Label, Kind: m.Kind,
				Failed: m.Failed, Flag: fmt.Sprintf("%s%d", r.Name, m.Number), Run: &color, Quiet: i > 0})
		}
	}
	return list
}

func resultView(c *compare.Comparison, index int) (comparedFigure, page.Chart) {
	r := &c.Results[index]
	f := comparedFigure{ID: fmt.Sprintf("result-%d", index+1), Result: r, Rehearsal: c.Rehearsal != nil, Log: r.Type == "latency",
		Long: c.Sets != nil || len(r.Rows)*(3*len(c.Runs)-2) > 2*page.LongRows, Many: len(r.Lines) > page.ManySeries, Caption: "Statistics by window", Zero: c.Alignment()}
	if base, _ := draw.BaseUnit(r.Unit); base != "" && !draw.OwnsPrefix(base) {
		f.Caption += ", in " + base
	}
	for i := range r.Rows {
		f.Groups = append(f.Groups, groupView(c, &r.Rows[i]))
	}
	from, to := resultExtent(r)
	margin := (to - from) * 0.015
	from, to = from-margin, to+margin
	ch := page.Chart{ID: f.ID, Title: r.Title, Unit: r.Unit, From: from, To: to}
	var lines []page.Plotted
	dashes := map[string]int{}
	for i := range r.Lines {
		l := &r.Lines[i]
		if len(l.Points) == 0 {
			continue
		}
		key := l.Kind + l.Statistic
		if _, known := dashes[key]; !known {
			dashes[key] = min(len(dashes), 2)
		}
		f.Reduced = f.Reduced || l.ReducedFrom > 0
		lines = append(lines, page.Plotted{Points: l.Points, ChartLine: page.ChartLine{Name: c.Runs[l.Run].Name + ": " + document.LineLabel(&l.Series),
			Color: colorOf(c, l.Run), Dash: dashes[key], Order: i, Statistic: l.Statistic}})
	}
	var reduced bool
	ch.Tables, reduced = page.Tables(lines, from, to)
	f.Reduced = f.Reduced || reduced
	f.Drawn = len(lines) > 0 && to > from
	f.Label = fmt.Sprintf("Line chart of %s in %d runs with %d lines. The table below has the statistics.", r.Title, len(c.Runs), len(lines))
	return f, ch
}

// colorOf is the colour of a run: its own, or that of its set.
func colorOf(c *compare.Comparison, run int) int {
	switch {
	case c.Sets == nil:
		return run
	case run < c.Sets.Base:
		return 0
	}
	return 1
}

func groupView(c *compare.Comparison, row *compare.Row) comparedGroup {
	g := comparedGroup{Window: document.WindowLabel(row.Window), Series: document.SeriesLabel(row.Series, row.Kind)}
	for i := range c.Runs {
		g.Rows = append(g.Rows, comparedLineView{Name: c.Runs[i].Name,
			Cells: cells(row, func(f *compare.Figure) string { return valueText(f, i) })})
	}
	for i := 1; i < len(c.Runs) && c.Sets == nil; i++ {
		g.Rows = append(g.Rows,
			comparedLineView{Name: c.Runs[i].Name + " ÷ " + c.Runs[0].Name, Versus: true,
				Cells: cells(row, func(f *compare.Figure) string { return ratioText(f.Ratios[i]) })},
			comparedLineView{Name: c.Runs[i].Name + " − " + c.Runs[0].Name, Versus: true,
				Cells: cells(row, func(f *compare.Figure) string { return compare.SignedAmount(f.Unit, f.Differences[i]) })})
	}
	return g
}
