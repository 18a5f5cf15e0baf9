package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// Columns of labels, with the gap after them: the usual one, and that of the longest label that others are aligned with.
const (
	labelWidth     = 14
	labelColumnMax = 28
)

// Terminal writes the report as text for width columns (0: 100). Text that is too wide is wrapped or stacked, never cut. With
// color it uses escape codes.
func Terminal(w io.Writer, run *document.Run, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	p := &textPage{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	p.document(page.Readable(document.Build(run)))
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write report %q: %w", run.Manifest.Run, err)
	}
	return nil
}

// textPage collects lines of text of one width.
type textPage struct {
	draw.Style
	out   bytes.Buffer
	width int
}

func (p *textPage) line(text string) {
	p.out.WriteString(strings.TrimRight(text, " "))
	p.out.WriteByte('\n')
}

// text wraps a paragraph with an indent.
func (p *textPage) text(indent, text string, paint func(string) string) {
	for _, l := range draw.Wrap(text, p.width-draw.DisplayWidth(indent)) {
		if paint != nil {
			l = paint(l)
		}
		p.line(indent + l)
	}
}

// item is a labelled paragraph whose lines hang below each other.
func (p *textPage) item(label, text string) { printItem(p, labelWidth, label, text) }

// printItem prints an item whose text begins in a given column. A label that is too long for any column has a line of its own.
func printItem(p *textPage, column int, label, text string) {
	if text == "" {
		return
	}
	if draw.DisplayWidth(label) > labelColumnMax-draw.ColumnGap {
		p.text("", label, p.Dim)
		label = ""
	}
	head := draw.Fill(label, max(column, draw.DisplayWidth(label)+1))
	for i, l := range draw.Wrap(text, max(10, p.width-draw.DisplayWidth(head))) {
		if i == 0 {
			p.line(p.Dim(head) + l)
			continue
		}
		p.line(strings.Repeat(" ", draw.DisplayWidth(head)) + l)
	}
}

// labelColumn is the column in which the texts of items with these labels begin.
func labelColumn(labels []string) int {
	column := labelWidth
	for _, l := range labels {
		if w := draw.DisplayWidth(l) + draw.ColumnGap; w <= labelColumnMax {
			column = max(column, w)
		}
	}
	return column
}

func (p *textPage) section(title string) {
	p.line("")
	p.line(p.Rule(title, p.width))
}

func (p *textPage) table(t *draw.Table) {
	for _, l := range t.Lines(p.width, p.Style) {
		p.line(l)
	}
}

func (p *textPage) document(d *document.Document) {
	p.validity(d)
	for i := range d.Results {
		p.result(d, &d.Results[i])
	}
	printScaling(p, d)
	printStages(p, d)
	p.workloads(d)
	p.impacts(d)
	p.durations(d)
	p.steps(d)
	p.facts(d)
}

func (p *textPage) validity(d *document.Document) {
	if d.Rehearsal != nil {
		p.banner("REHEARSAL: scaled down; not comparable with a full run")
	}
	p.line(p.Bold(document.DisplayName(d)) + p.Dim("  "+d.Run))
	p.verdict(d)
	p.line("")
	p.item("ended", d.Ended)
	p.item("duration", draw.Duration(d.DurationNanos))
	p.item("started", d.Created.UTC().Format("2006-01-02 15:04:05 MST"))
	p.item("label", d.Label)
	p.item("target", document.TargetLine(d))
	if len(d.Reduced)+len(d.Simulated) > 0 {
		p.section("Deviations from the scenario")
		for _, l := range slices.Concat(d.Reduced, d.Simulated) {
			p.text("  ", l, nil)
		}
	}
	if len(d.Findings)+len(d.Caveats) > 0 {
		p.section("Findings and caveats")
		for _, f := range document.ShownFindings(d.Findings) {
			p.finding(f.Of, f.Finding)
		}
		for _, c := range d.Caveats {
			p.text("  ", "caveat: "+c, nil)
		}
	}
}

// verdict prints the two verdicts with their reasons, one below the other.
func (p *textPage) verdict(d *document.Document) {
	width := max(len(d.Verdict), len(d.Validity)) + draw.ColumnGap
	p.hanging(string(d.Verdict), width, d.Reason, map[result.Verdict]func(string) string{
		result.Pass: p.Good, result.Completed: p.Bold, result.Failed: p.Bad, result.Undecided: p.Doubt}[d.Verdict])
	if d.Validity != "" {
		p.hanging(string(d.Validity), width, d.ValidityReason, map[result.Validity]func(string) string{
			result.Valid: p.Good, result.Qualified: p.Doubt, result.Invalid: p.Bad}[d.Validity])
	}
}

// hanging prints a painted word and a text beside it.
func (p *textPage) hanging(word string, width int, text string, paint func(string) string) {
	if paint != nil {
		word = paint(draw.Fill(word, width))
	}
	p.line(word + strings.Join(draw.Wrap(text, max(10, p.width-width)), "\n"+strings.Repeat(" ", width)))
}

// finding prints one finding; of names its runs in a comparison.
func (p *textPage) finding(of string, f finding.Finding) {
	paint := map[finding.Severity]func(string) string{
		finding.Fail: p.Bad, finding.Undecided: p.Doubt, finding.Warning: p.Doubt}[f.Severity]
	head := string(f.Severity) + ": " + of
	if subject := document.SubjectBeside(f); subject != "" {
		head += subject + ": "
	}
	p.text("  ", head+f.Claim+" ["+f.Code+"]", paint)
	for _, e := range slices.Concat(f.Evidence, f.Caveats) {
		p.text("      ", e, nil)
	}
	if f.Advice != "" {
		p.text("      ", "→ "+f.Advice, nil)
	}
}

func (p *textPage) result(d *document.Document, r *document.Result) {
	p.section(r.HeadingWithUnit())
	if r.Hint != "" {
		p.text("", r.Hint, p.Dim)
	}
	if r.Missing != "" {
		p.text("", "no data: "+r.Missing, p.Doubt)
	}
	from, to := r.Extent()
	for _, s := range r.Series {
		p.spark(document.LineLabel(&s), func(columns int) string { return draw.Sparkline(s.Points, from, to, columns) })
	}
	if len(r.Series) > 0 {
		p.line(p.Dim(unit.FormatClock(int64(from*1e9)) + " to " + unit.FormatClock(int64(to*1e9)) + ", drawn from zero"))
	}
	if len(r.Rows) > 0 {
		p.line("")
		t := statisticTable(r)
		p.table(&t)
	}
	for _, text := range r.BoundsTexts() {
		p.text("", text, p.Dim)
	}
	p.thresholds(r)
}

// spark draws a line with its label to the right, or above if the label is long.
func (p *textPage) spark(label string, sparkline func(columns int) string) {
	if draw.DisplayWidth(label) <= p.width/3 {
		p.line(p.Accent(sparkline(p.width-p.width/3-2)) + "  " + p.Dim(label))
		return
	}
	p.text("", label, p.Dim)
	p.line(p.Accent(sparkline(p.width)))
}

func (p *textPage) thresholds(r *document.Result) {
	if r.Expected != nil {
		p.item("expected", draw.Quantity(*r.Expected, r.Unit))
	}
	for _, b := range r.Bands {
		p.item("band", fmt.Sprintf("%s: %s to %s", b.Name, draw.Quantity(b.Lower, r.Unit), draw.Quantity(b.Upper, r.Unit)))
	}
	if text := r.PercentText(); text != "" {
		p.item("in percent", text)
	}
	for _, m := range r.Metrics {
		p.item(document.MetricLabel(m), draw.Quantity(float64(m.Value), m.Unit)+document.XrayText(m)+document.PassText(m.Pass))
	}
	for _, c := range r.Checks {
		p.item("check", document.CheckText(c))
	}
}

func statisticTable(r *document.Result) draw.Table {
	t := draw.Table{Heads: append([]string{"window", "series", "count"}, r.Heads()...), Left: 2, Grouped: true}
	for i := range r.Rows {
		s := &r.Rows[i]
		t.Add(append([]string{document.WindowLabel(s.Window), document.SeriesLabel(s.Series, s.Kind), unit.FormatWhole(s.Count)}, r.Texts(*s)...)...)
	}
	return t
}

// banner writes a warning over the whole width.
func (p *textPage) banner(text string) {
	for _, l := range draw.Wrap(text, p.width-1) {
		p.line(p.Warning(draw.Fill(" "+l, p.width)))
	}
}

func (p *textPage) workloads(d *document.Document) {
	if len(d.Workloads) == 0 {
		return
	}
	p.section("Workloads")
	t := document.WorkloadTable(d)
	p.table(&t)
	titles := make([]string, len(d.Workloads))
	for i := range d.Workloads {
		titles[i] = d.Workloads[i].Title()
	}
	column := labelColumn(titles)
	for i := range d.Workloads {
		w := &d.Workloads[i]
		printItem(p, column, w.Title(), w.EngineText())
		for _, line := range w.GaugeTexts() {
			printItem(p, column, "", line)
		}
		for _, class := range sortedKeys(w.Errors) {
			printItem(p, column, "", fmt.Sprintf("%s errors: %s", class, unit.FormatWhole(w.Errors[class])))
		}
		if w.Error != "" {
			p.text("  ", w.Title()+": "+w.Error, p.Bad)
		}
	}
	if t := document.LatencyTable(d); len(t.Rows) > 0 {
		p.line("")
		p.table(&t)
	}
}
