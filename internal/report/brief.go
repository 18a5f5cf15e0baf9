package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	briefTitleMin = 22 // columns
	briefSparkMin = 10
	briefSparkMax = 24
)

// Brief writes a summary of about one screen: the verdict, findings, and one table with a row per result for the whole run.
// Terminal writes the full report. Width and color are those of Terminal.
func Brief(w io.Writer, run *document.Run, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	p := &textPage{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	d := page.Readable(document.Build(run))
	shortNames(d)
	p.brief(d)
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write report %q: %w", run.Manifest.Run, err)
	}
	return nil
}

func (p *textPage) brief(d *document.Document) {
	if d.Rehearsal != nil {
		p.banner(plan.RehearsalLine(d.Rehearsal) + "; not comparable with a full run")
	}
	p.text("", document.DisplayName(d), p.Bold)
	p.text("", fmt.Sprintf("%s, %s after %s on %s", d.Run, d.Ended, draw.Duration(d.DurationNanos), document.TargetLine(d)), p.Dim)
	d.ValidityReason = validityReason(d)
	p.verdict(d)
	p.answers(d)
	if d.Scaling != nil {
		p.line("")
		p.text("", d.Scaling.Sentence, nil)
	}
	briefStages(p, d)
	asked, left := briefResults(d)
	if len(asked) > 0 {
		p.line("")
		t := briefTable(asked, p.width)
		p.table(&t)
	}
	p.line("")
	p.missing(d)
	p.failures(d)
	titles := make([]string, len(d.Measured))
	for i := range d.Measured {
		titles[i] = d.Measured[i].Title()
	}
	for i := range d.Measured {
		printItem(p, labelColumn(titles), titles[i], strings.Join(d.Measured[i].Facts, "; "))
	}
	p.briefFindings(d)
	p.line("")
	p.item("completed", strings.Join(completions(d), "; "))
	p.item("HTML", strings.Join(left, "; "))
}

// briefGaugesMax is how many gauges of loads the summary shows: more would push the findings off the screen.
const briefGaugesMax = 16

// briefResults are the results with a row in the summary, and what only the full report has.
func briefResults(d *document.Document) (shown []document.Result, left []string) {
	gauges, unasked := 0, 0
	for i := range d.Results {
		if d.Results[i].Gauge {
			gauges++
		}
	}
	for _, r := range d.Results {
		switch {
		case r.Unasked:
			unasked++
		case !r.Gauge || gauges <= briefGaugesMax:
			shown = append(shown, r)
		}
	}
	if gauges > briefGaugesMax {
		left = append(left, fmt.Sprintf("%d gauges of loads", gauges))
	}
	if unasked > 0 {
		left = append(left, moreCharts(d, unasked))
	}
	return shown, left
}

// moreCharts names the charts that no scenario requested.
func moreCharts(d *document.Document, n int) string {
	if len(d.Target.Sources) > 0 {
		return fmt.Sprintf("%d more charts of counters of the storage and hypervisor", n)
	}
	return fmt.Sprintf("%d more per-VM hypervisor charts", n)
}

// answers prints the numbers that answer first, and the sentence of each event.
func (p *textPage) answers(d *document.Document) {
	if len(d.Headlines) > 0 {
		p.line("")
		t := document.HeadlineTable(d)
		p.table(&t)
		p.note(document.HeadlineNote(d))
	}
	shown, more := document.CostsShown(d)
	if len(shown) > 0 {
		p.line("")
	}
	for _, i := range shown {
		p.item(unit.FormatClock(i.FromNanos), i.Sentence)
	}
	if more > 0 {
		p.item("", fmt.Sprintf("%d more events: bragg report", more))
	}
	p.note(document.CostsNote(d, shown))
}

// note prints a remark on the table above.
func (p *textPage) note(text string) {
	if text != "" {
		p.text("", text, p.Dim)
	}
}

// briefTable has a row per result; service and response time are two rows.
func briefTable(results []document.Result, width int) draw.Table {
	t := draw.Table{Heads: []string{"result", "mean", "median", "p99", "CV"}, Left: 1}
	var sparks []func(columns int) string
	for i := range results {
		r := &results[i]
		groups := briefGroups(r)
		if len(groups) == 0 {
			t.Add(briefTitle(r, nil), "missing", "", "", "")
			sparks = append(sparks, func(int) string { return "" })
		}
		for _, rows := range groups {
			t.Add(append([]string{briefTitle(r, rows)}, briefCells(r, rows)...)...)
			sparks = append(sparks, func(columns int) string { return briefSpark(r, rows, columns) })
		}
	}
	// Long titles are wrapped to leave room for the sparkline.
	widths := t.Widths()
	room := width - draw.Sum(widths) - draw.ColumnGap*len(t.Heads)
	if room < briefSparkMin {
		room = min(briefSparkMin, room+max(0, widths[0]-briefTitleMin))
	}
	if room < briefSparkMin {
		return t
	}
	columns := min(room, briefSparkMax)
	t.Heads = append(t.Heads, draw.Fill("over time", columns))
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], draw.Fill(sparks[i](columns), columns))
	}
	return t
}

// briefGroups picks the rows of the whole window, one group per kind of time: the sum of all series if the result has one.
func briefGroups(r *document.Result) [][]*document.Statistic {
	var kinds []string
	groups := map[string][]*document.Statistic{}
	for i := range r.Rows {
		s := &r.Rows[i]
		if s.Window != "" || r.Missing != "" {
			continue
		}
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
		groups[s.Kind] = append(groups[s.Kind], s)
	}
	list := make([][]*document.Statistic, 0, len(kinds))
	for _, k := range kinds {
		rows := groups[k]
		if all := slices.IndexFunc(rows, func(s *document.Statistic) bool { return s.Series == "all" }); all >= 0 {
			rows = rows[all : all+1]
		}
		list = append(list, rows)
	}
	return list
}

func briefTitle(r *document.Result, rows []*document.Statistic) string {
	title := r.Heading()
	if len(rows) > 0 && rows[0].Kind != "" {
		title += ", " + rows[0].Kind
	}
	if len(rows) > 1 {
		title += fmt.Sprintf(" (each of %d)", len(rows))
	}
	if r.Simulated {
		title += ", simulated"
	}
	return title
}

// briefCells are mean, median, p99 of latency and CV; for several series, their range.
func briefCells(r *document.Result, rows []*document.Statistic) []string {
	quantity := func(v float64) string { return draw.Quantity(v, r.Unit) }
	amount := func(v float64) string { return draw.Amount(v, r.Unit) }
	cells := []string{
		bounded(rows, "mean", span(rows, func(s *document.Statistic) result.Number { return s.Mean }, quantity)),
		bounded(rows, "median", span(rows, func(s *document.Statistic) result.Number { return s.Median }, amount)),
		"",
		span(rows, func(s *document.Statistic) result.Number { return s.CV }, unit.FormatPercent),
	}
	if rows[0].Kind != "" {
		cells[2] = bounded(rows, "p99", span(rows, func(s *document.Statistic) result.Number { return s.P99 }, amount))
	}
	return cells
}

// bounded marks a statistic that is only a lower bound in any row.
func bounded(rows []*document.Statistic, name, text string) string {
	if slices.ContainsFunc(rows, func(s *document.Statistic) bool { return s.AtLeast.Has(name) }) {
		return "≥ " + text
	}
	return text
}

// span prints the smallest and the largest value of a statistic. A common unit is printed once.
func span(rows []*document.Statistic, pick func(*document.Statistic) result.Number, format func(float64) string) string {
	low, high := math.NaN(), math.NaN()
	for _, s := range rows {
		v := float64(pick(s))
		if !(v >= low) && !math.IsNaN(v) {
			low = v
		}
		if !(v <= high) && !math.IsNaN(v) {
			high = v
		}
	}
	return between(format(low), format(high))
}

// between joins two quantities: "3 ms" and "5 ms" become "3 to 5 ms".
func between(low, high string) string {
	if low == high {
		return low
	}
	number, unitName, found := strings.Cut(low, " ")
	if found && strings.HasSuffix(high, " "+unitName) {
		low = number
	}
	return low + " to " + high
}

// briefSpark draws the sparkline of the rows; for several series, of their mean.
func briefSpark(r *document.Result, rows []*document.Statistic, columns int) string {
	from, to := r.Extent()
	sums, counts := make([]float64, columns), make([]float64, columns)
	for i := range r.Series {
		s := &r.Series[i]
		drawn := slices.ContainsFunc(rows, func(row *document.Statistic) bool { return row.Series == s.Name && row.Kind == s.Kind })
		if !drawn || s.Statistic == "p99" {
			continue
		}
		for c, v := range draw.ColumnMeans(s.Points, from, to, columns) {
			if !math.IsNaN(v) {
				sums[c] += v
				counts[c]++
			}
		}
	}
	for c := range sums {
		sums[c] /= counts[c] // 0/0 is NaN, a blank
	}
	return draw.SparkOf(sums, draw.Largest(sums))
}

// missing lists the results without data, by reason.
func (p *textPage) missing(d *document.Document) {
	var reasons []string
	titles := map[string][]string{}
	for i := range d.Results {
		r := &d.Results[i]
		if len(briefGroups(r)) > 0 {
			continue
		}
		reason := r.Missing
		if reason == "" {
			reason = "no data recorded"
		}
		if titles[reason] == nil {
			reasons = append(reasons, reason)
		}
		titles[reason] = append(titles[reason], r.Heading())
	}
	for _, reason := range reasons {
		p.item("missing", textio.JoinAnd(titles[reason])+": "+reason)
	}
}

// failures lists the failed checks.
func (p *textPage) failures(d *document.Document) {
	for i := range d.Results {
		r := &d.Results[i]
		for _, c := range r.Checks {
			if !c.Passed || c.Reason != "" {
				p.item("check", r.Heading()+": "+document.CheckText(c))
			}
		}
		for _, m := range r.Metrics {
			if m.Pass != nil && !*m.Pass {
				p.item("check", r.Heading()+": "+document.MetricLabel(m)+" "+draw.Quantity(float64(m.Value), m.Unit)+document.XrayText(m)+document.PassText(m.Pass))
			}
		}
	}
}

// completions lists how long loads of a fixed size took.
func completions(d *document.Document) []string {
	var list []string
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.CompletionNanos > 0 {
			list = append(list, w.Title()+" "+draw.Duration(w.CompletionNanos))
		}
	}
	return list
}
