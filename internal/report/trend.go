package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// TrendTerminal writes a trend as text for width columns (0: 100).
func TrendTerminal(w io.Writer, t *compare.Trend, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	t = page.Readable(t)
	p := &textPage{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	if t.Rehearsal {
		p.banner("REHEARSALS: scaled down; not comparable with a full run")
	}
	p.line(p.Bold("Trend of "+t.Scenario) + p.Dim("  "+t.Number))
	p.line("")
	p.text("", t.Headline, p.Bold)
	if t.Gate != nil {
		printGate(p, t.Gate)
	}
	p.line("")
	plot := trendPlot(t)
	for _, line := range plot.Lines(min(p.width, plotColumns), p.Style) {
		p.line(line)
	}
	p.section("Runs")
	table := trendTable(t)
	p.table(&table)
	p.text("", trendNote, p.Dim)
	for _, text := range t.LeftOut {
		p.text("", text, p.Dim)
	}
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write trend: %w", err)
	}
	return nil
}

const trendNote = "Band: a further run of the same level is within it in 95 % of cases. A change is where the level before and after differ more " +
	"than in 96.5 % of random orders of the same runs."

// trendPlot draws the number of run after run, with the band of each level and the baseline; the first run after a change and runs
// outside of their band are marked.
func trendPlot(t *compare.Trend) draw.Plot {
	plot := draw.Plot{XName: "run", YName: t.Number + ": ● run, · band", X: func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) },
		Y: func(v float64) string { return draw.Quantity(v, t.Unit) }}
	low, high := math.Inf(1), math.Inf(-1)
	see := func(values ...result.Number) {
		for _, v := range values {
			low, high = min(low, float64(v)), max(high, float64(v))
		}
	}
	for i := range t.Points {
		at := draw.XY{X: float64(i + 1), Y: float64(t.Points[i].Value)}
		plot.Points = append(plot.Points, at)
		if see(t.Points[i].Value); t.Points[i].Outside || marksChange(t, i) {
			plot.Marked = append(plot.Marked, at)
		}
	}
	for i := range t.Levels {
		l := &t.Levels[i]
		if math.IsNaN(float64(l.Low)) {
			continue
		}
		see(l.Low, l.High)
		for _, y := range []result.Number{l.Low, l.High} {
			plot.Curves = append(plot.Curves, []draw.XY{{X: float64(l.From + 1), Y: float64(y)}, {X: float64(l.From + l.Runs), Y: float64(y)}})
		}
	}
	if len(plot.Marked) > 0 {
		plot.YName += ", ◆ first run after a change, or outside the band"
	}
	if b := t.Baseline; b != nil {
		see(b.Mean)
		plot.Level = []draw.XY{{X: 1, Y: float64(b.Mean)}, {X: float64(len(t.Points)), Y: float64(b.Mean)}}
		plot.YName += ", ╌ baseline"
	}
	if high > low { // else the axis begins at zero
		plot.From = max(0, min(low-(high-low)/10, high*(1-axisShare)))
	}
	return plot
}

// axisShare is the least share of the highest value that the axis covers: runs that differ by less would fill it with their noise, between
// labels that read the same.
const axisShare = 0.02

// marksChange reports whether a run is the first after a change of level.
func marksChange(t *compare.Trend, i int) bool { return i > 0 && t.Levels[t.Points[i].Level].From == i }

// trendView is the input of the trend template.
type trendView struct {
	page.Shell
	Of    *compare.Trend
	Gate  []gateLine
	Drawn bool
	Note  string
	Table draw.Table
}

// TrendHTML writes the trend as one self-contained page.
func TrendHTML(w io.Writer, t *compare.Trend) error {
	t = page.Readable(t)
	v := &trendView{Of: t, Gate: gateLines(t.Gate), Drawn: len(t.Points) > 1, Note: trendNote, Table: trendTable(t)}
	data := page.PageData{Marks: []page.PageMark{}}
	if v.Drawn {
		data.Charts = append(data.Charts, trendChart(t))
	}
	var err error
	v.Shell, err = page.NewShell("Trend of "+t.Scenario+": "+t.Number, t.Rehearsal, data)
	v.Trend = true
	if err == nil {
		err = page.Templates().ExecuteTemplate(w, "page", v)
	}
	if err != nil {
		return fmt.Errorf("write trend: %w", err)
	}
	return nil
}

// trendChart has the runs as points, the levels with their bands, and the baseline as a line.
func trendChart(t *compare.Trend) page.Chart {
	n := float64(len(t.Points))
	c := page.Chart{ID: "trend", Title: t.Number, Unit: t.Unit, From: 0.5, To: n + 0.5, Against: "run, in order of time", Near: true}
	runs := page.Plotted{ChartLine: page.ChartLine{Name: "run", Dots: true}}
	marked := page.Plotted{ChartLine: page.ChartLine{Name: "first run after a change, or outside the band", Dots: true, Color: 3, Order: 5}}
	for i := range t.Points {
		point := &t.Points[i]
		name := point.Run + " of " + point.Created.UTC().Format("2006-01-02")
		if point.Label != "" {
			name += ", " + point.Label
		}
		c.Names = append(c.Names, name)
		at := result.Point{Seconds: float64(i + 1), Value: float64(point.Value)}
		if point.Outside || marksChange(t, i) {
			marked.Points = append(marked.Points, at)
		}
		runs.Points = append(runs.Points, at)
	}
	lines := []page.Plotted{runs}
	for i, line := range []struct {
		name, band string
		value      func(l *compare.Level) result.Number
	}{
		{"band, low", "min", func(l *compare.Level) result.Number { return l.Low }},
		{"level", "median", func(l *compare.Level) result.Number { return l.Mean }},
		{"band, high", "max", func(l *compare.Level) result.Number { return l.High }},
	} {
		lines = append(lines, page.Plotted{Points: levelPoints(t, line.value), ChartLine: page.ChartLine{Name: line.name, Band: line.band, Color: 1, Order: i + 1}})
	}
	if t.Baseline != nil {
		mean := float64(t.Baseline.Mean)
		lines = append(lines, page.Plotted{Points: result.Points{{Seconds: 0.5, Value: mean}, {Seconds: n + 0.5, Value: mean}},
			ChartLine: page.ChartLine{Name: "baseline", Color: 2, Dash: 1, Order: 4}})
	}
	if len(marked.Points) > 0 {
		lines = append(lines, marked)
	}
	c.Tables, _ = page.Tables(lines, c.From, c.To)
	return c
}

// levelPoints is a line with a step between levels.
func levelPoints(t *compare.Trend, value func(l *compare.Level) result.Number) (list result.Points) {
	const gap = 0.001
	for i := range t.Levels {
		l := &t.Levels[i]
		from, v := float64(l.From)+0.5, float64(value(l))
		if i > 0 {
			from += gap
		}
		to := float64(l.From+l.Runs) + 0.5
		if i+1 < len(t.Levels) {
			to -= gap
		}
		list = append(list, result.Point{Seconds: from, Value: v}, result.Point{Seconds: to, Value: v})
	}
	return list
}

// trendTable has a row for each run; the first of a level has its band, and what changed with it.
func trendTable(t *compare.Trend) draw.Table {
	table := draw.Table{Heads: []string{"started", "run", "label", "note", "value", "band"}, Left: 4}
	for i := range t.Points {
		point, level := &t.Points[i], &t.Levels[t.Points[i].Level]
		band, note := "", ""
		if i == level.From {
			if band = "too few runs"; level.Runs > 2 {
				low, high := draw.Quantity(float64(level.Low), t.Unit), draw.Quantity(float64(level.High), t.Unit)
				if band = low; high != low {
					band += " to " + high
				}
			}
			if i > 0 {
				note = "changed by " + draw.Signed(unit.FormatPercent(float64(level.Change)))
				for _, f := range level.Factors {
					note += "; " + f
				}
			}
		}
		if point.Outside {
			note = "outside the band"
		}
		if point.Pinned {
			note = strings.TrimPrefix(note+"; baseline", "; ")
		}
		table.Add(point.Created.UTC().Format("2006-01-02 15:04"), point.Run, point.Label, note, draw.Quantity(float64(point.Value), t.Unit), band)
	}
	return table
}
