package report

import (
	"fmt"
	"io"
	"math"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// ComparisonTerminal writes the comparison as text for width columns (0: 100).
func ComparisonTerminal(w io.Writer, c *compare.Comparison, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	p := &textPage{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	p.comparison(page.Readable(c))
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func (p *textPage) comparison(c *compare.Comparison) {
	if c.Rehearsal != nil {
		p.banner("REHEARSALS: scaled down; not comparable with a full run")
	}
	p.line(p.Bold(setsTitle(c)) + p.Dim("  aligned at "+c.Alignment()))
	for _, r := range c.Runs {
		p.item(r.Name, runLine(r))
	}
	p.line("")
	p.text("", c.Headline, p.Bold)
	if c.Gate != nil {
		printGate(p, c.Gate)
	}
	if c.Sets != nil {
		printSets(p, c)
	} else {
		p.comparedDifferences(c)
	}
	printCosts(p, c)
	p.comparedValidity(c)
	p.section("Factors that differ")
	if len(c.Factors) == 0 {
		p.text("", factorsSame, nil)
	} else {
		t := factorTable(c)
		p.table(&t)
	}
	for i := range c.Results {
		p.comparedResult(c, &c.Results[i])
	}
	if len(c.Loads) > 0 && c.Sets == nil {
		p.section("Workloads")
		t := loadTable(c)
		p.table(&t)
	}
	if t := perCPUTable(c); len(t.Rows) > 0 {
		p.section("Per CPU of the database")
		p.table(&t)
		p.text("", perCPUNote, nil)
	}
}

const factorsSame = "Scenario, variables, target, engines, versions and environment match, as far as recorded."

func runLine(r compare.Run) string {
	text := fmt.Sprintf("%s  %s  %s", r.Run, r.Scenario, result.Headline(r.Verdict, r.Validity))
	if r.Label != "" {
		text += "  " + r.Label
	}
	return text
}

func factorTable(c *compare.Comparison) draw.Table {
	t := draw.Table{Heads: []string{"factor"}}
	if c.Sets != nil {
		t.Heads, t.Left = []string{"factor", "A", "B"}, 3
		for _, f := range c.Factors {
			t.Add(f.Name, setValues(f.Values[:c.Sets.Base]), setValues(f.Values[c.Sets.Base:]))
		}
		return t
	}
	for _, r := range c.Runs {
		t.Heads = append(t.Heads, r.Name)
	}
	t.Left = len(t.Heads)
	for _, f := range c.Factors {
		row := []string{f.Name}
		for _, v := range f.Values {
			if v == "" {
				v = "–"
			}
			row = append(row, v)
		}
		t.Add(row...)
	}
	return t
}

func (p *textPage) comparedResult(c *compare.Comparison, r *compare.Result) {
	if c.Sets != nil && (len(r.Lines) == 0 || r.Unasked()) {
		return
	}
	p.section(r.Title)
	p.comparedLines(c, r)
	if len(r.Rows) > 0 && c.Sets == nil {
		t := resultTable(c, r)
		p.table(&t)
	}
}

// comparedLines draws lines of one kind on one scale, so that they can be compared.
func (p *textPage) comparedLines(c *compare.Comparison, r *compare.Result) {
	if len(r.Lines) == 0 {
		return
	}
	from, to := resultExtent(r)
	tops := map[string]float64{}
	for i := range r.Lines {
		l := &r.Lines[i]
		tops[l.Kind+l.Statistic] = max(tops[l.Kind+l.Statistic], draw.Largest(draw.ColumnMeans(l.Points, from, to, p.width)))
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		p.spark(c.Runs[l.Run].Name+": "+document.LineLabel(&l.Series), func(columns int) string {
			return draw.SparkOf(draw.ColumnMeans(l.Points, from, to, columns), tops[l.Kind+l.Statistic])
		})
	}
	p.line(p.Dim(unit.FormatClock(int64(from*1e9)) + " to " + unit.FormatClock(int64(to*1e9)) + "; lines of one kind share a scale from zero"))
	p.line("")
}

func resultExtent(r *compare.Result) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for i := range r.Lines {
		if points := r.Lines[i].Points; len(points) > 0 {
			from, to = min(from, points[0].Seconds), max(to, points[len(points)-1].Seconds)
		}
	}
	if from > to {
		return 0, 0
	}
	return from, to
}

// resultTable has for each window and series one row per run, then ratio and difference of every further run.
func resultTable(c *compare.Comparison, r *compare.Result) draw.Table {
	t := draw.Table{Heads: append([]string{"window", "series", "run"}, document.StatisticHeads...), Left: 3, Grouped: true}
	for i := range r.Rows {
		g := groupView(c, &r.Rows[i])
		series := g.Series
		for _, line := range g.Rows {
			t.Add(append([]string{g.Window, series, line.Name}, line.Cells...)...)
			series = ""
		}
	}
	return t
}

func cells(row *compare.Row, text func(*compare.Figure) string) []string {
	var out []string
	for i := range row.Figures {
		out = append(out, text(&row.Figures[i]))
	}
	return out
}

func loadTable(c *compare.Comparison) draw.Table {
	return figureTable(c, func(l *compare.Load) []compare.Figure { return l.Figures })
}

// perCPUTable has rows only if the runs have databases with different CPUs.
func perCPUTable(c *compare.Comparison) draw.Table {
	return figureTable(c, func(l *compare.Load) []compare.Figure { return l.PerCPU })
}

// perCPUNote is under that table.
const perCPUNote = "CPUs of the database of each workload. A vCPU of an endpoint is a thread, of which a core has as many as the scenario states; a vCPU of a VM " +
	"counts as one core, unless the topology of its group has several threads for each."

func figureTable(c *compare.Comparison, of func(*compare.Load) []compare.Figure) draw.Table {
	t := draw.Table{Heads: []string{"workload", "figure"}, Left: 2}
	for _, r := range c.Runs {
		t.Heads = append(t.Heads, r.Name)
	}
	for _, r := range c.Runs[1:] {
		t.Heads = append(t.Heads, r.Name+" ÷ "+c.Runs[0].Name, r.Name+" − "+c.Runs[0].Name)
	}
	for i := range c.Loads {
		title := c.Loads[i].Workload
		figures := of(&c.Loads[i])
		for j := range figures {
			f := &figures[j]
			row := []string{title, f.Name}
			for k := range c.Runs {
				row = append(row, valueText(f, k))
			}
			for k := 1; k < len(c.Runs); k++ {
				row = append(row, ratioText(f.Ratios[k]), compare.SignedAmount(f.Unit, f.Differences[k]))
			}
			t.Add(row...)
			title = ""
		}
	}
	return t
}
