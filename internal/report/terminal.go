package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	labelWidth = 14
)

// Terminal writes the report as text for width columns (0: 100). It cuts nothing: what is too wide is wrapped or
// stacked. With color it uses escape codes.
func Terminal(w io.Writer, run *Run, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	p := &page{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	p.document(readable(Build(run)))
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write report %q: %w", run.Manifest.Run, err)
	}
	return nil
}

// page collects lines of text of one width.
type page struct {
	draw.Style
	out   bytes.Buffer
	width int
}

func (p *page) line(text string) {
	p.out.WriteString(strings.TrimRight(text, " "))
	p.out.WriteByte('\n')
}

// text wraps a paragraph with an indent.
func (p *page) text(indent, text string, paint func(string) string) {
	for _, l := range draw.Wrap(text, p.width-draw.DisplayWidth(indent)) {
		if paint != nil {
			l = paint(l)
		}
		p.line(indent + l)
	}
}

// item is a labelled paragraph whose lines hang below each other.
func (p *page) item(label, text string) {
	if text == "" {
		return
	}
	head := label + strings.Repeat(" ", max(1, labelWidth-draw.DisplayWidth(label)))
	for i, l := range draw.Wrap(text, max(10, p.width-draw.DisplayWidth(head))) {
		if i == 0 {
			p.line(p.Dim(head) + l)
			continue
		}
		p.line(strings.Repeat(" ", draw.DisplayWidth(head)) + l)
	}
}

func (p *page) section(title string) {
	p.line("")
	p.line(p.Rule(title, p.width))
}

func (p *page) table(t *draw.Table) {
	for _, l := range t.Lines(p.width, p.Style) {
		p.line(l)
	}
}

func (p *page) document(d *Document) {
	p.validity(d)
	for i := range d.Results {
		p.result(d, &d.Results[i])
	}
	p.workloads(d)
	p.durations(d)
	p.steps(d)
	p.facts(d)
}

func (p *page) validity(d *Document) {
	if d.Rehearsal != nil {
		p.banner("REHEARSAL: scaled down; not comparable with a full run")
	}
	p.line(p.Bold(displayName(d)) + p.Dim("  "+d.Run))
	p.verdict(d)
	p.line("")
	p.item("ended", d.Ended)
	p.item("duration", draw.Duration(d.DurationNanos))
	p.item("started", d.Created.UTC().Format("2006-01-02 15:04:05 MST"))
	p.item("label", d.Label)
	p.item("target", targetLine(d))
	if len(d.Reduced)+len(d.Imitated) > 0 {
		p.section("Deviations from the scenario")
		for _, l := range slices.Concat(d.Reduced, d.Imitated) {
			p.text("  ", l, nil)
		}
	}
	if len(d.Findings)+len(d.Caveats) > 0 {
		p.section("Findings and caveats")
		for _, f := range shownFindings(d.Findings) {
			p.finding(f.Of, f.Finding)
		}
		for _, c := range d.Caveats {
			p.text("  ", "caveat: "+c, nil)
		}
	}
}

// verdict prints the verdict and its reason.
func (p *page) verdict(d *Document) {
	paint := map[result.Verdict]func(string) string{result.Pass: p.Good, result.Failed: p.Bad}[d.Verdict]
	if paint == nil {
		paint = p.Doubt
	}
	reason := draw.Wrap(d.Reason, p.width-len(d.Verdict)-2)
	p.line(paint(string(d.Verdict)) + "  " + strings.Join(reason, "\n"+strings.Repeat(" ", len(d.Verdict)+2)))
}

// finding prints one finding; of names the runs that it is of, where there are several.
func (p *page) finding(of string, f finding.Finding) {
	paint := map[finding.Severity]func(string) string{
		finding.Fail: p.Bad, finding.Unknown: p.Doubt, finding.Warning: p.Doubt}[f.Severity]
	head := string(f.Severity) + ": " + of
	if subject := subjectBeside(f); subject != "" {
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

// subjectBeside is the subject of a finding where its claim does not name it anyway.
func subjectBeside(f finding.Finding) string {
	if strings.Contains(f.Claim, f.Subject) {
		return ""
	}
	return f.Subject
}

func (p *page) result(d *Document, r *Result) {
	p.section(r.headingWithUnit())
	if r.Hint != "" {
		p.text("", r.Hint, p.Dim)
	}
	if r.Missing != "" {
		p.text("", "no data: "+r.Missing, p.Doubt)
	}
	from, to := r.extent()
	for _, s := range r.Series {
		p.spark(lineLabel(&s), func(columns int) string { return draw.Sparkline(s.Points, from, to, columns) })
	}
	if len(r.Series) > 0 {
		p.line(p.Dim(draw.Clock(int64(from*1e9)) + " to " + draw.Clock(int64(to*1e9)) + ", drawn from zero"))
	}
	if len(r.Rows) > 0 {
		p.line("")
		t := statisticTable(r)
		p.table(&t)
	}
	p.expectations(r)
}

// spark draws a line with its label behind it, or above it where the label is long.
func (p *page) spark(label string, sparkline func(columns int) string) {
	if draw.DisplayWidth(label) <= p.width/3 {
		p.line(p.Accent(sparkline(p.width-p.width/3-2)) + "  " + p.Dim(label))
		return
	}
	p.text("", label, p.Dim)
	p.line(p.Accent(sparkline(p.width)))
}

func (p *page) expectations(r *Result) {
	if r.Expected != nil {
		p.item("expected", draw.Quantity(*r.Expected, r.Unit))
	}
	for _, b := range r.Bands {
		p.item("band", fmt.Sprintf("%s: %s to %s", b.Name, draw.Quantity(b.Lower, r.Unit), draw.Quantity(b.Upper, r.Unit)))
	}
	if text := r.percentText(); text != "" {
		p.item("in percent", text)
	}
	for _, m := range r.Metrics {
		p.item(metricLabel(m), draw.Quantity(float64(m.Value), m.Unit)+xrayText(m)+passText(m.Pass))
	}
	for _, c := range r.Checks {
		p.item("check", checkText(c))
	}
}

// headingWithUnit names the unit where the cells of the table below leave it out.
func (r *Result) headingWithUnit() string {
	base, _ := draw.BaseUnit(r.Unit)
	if base == "" || draw.OwnsPrefix(base) || strings.Contains(r.Heading(), base) {
		return r.Heading()
	}
	return r.Heading() + " (" + base + ")"
}

func metricLabel(m result.Metric) string {
	if m.Series == "" {
		return m.Name
	}
	return m.Name + " of " + m.Series
}

// percentText says how much of what there is was used, where a result tells both.
func (r *Result) percentText() string {
	if r.Full <= 0 {
		return ""
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range r.Rows {
		if s := &r.Rows[i]; s.Window == "" && !math.IsNaN(float64(s.Mean)) {
			low, high = min(low, float64(s.Mean)/r.Full*100), max(high, float64(s.Mean)/r.Full*100)
		}
	}
	switch {
	case high < low:
		return ""
	case low == high:
		return fmt.Sprintf("%s of %s on average", draw.Quantity(high, "%"), draw.Quantity(r.Full, r.Unit))
	}
	return fmt.Sprintf("%s to %s of %s on average", draw.Quantity(low, "%"), draw.Quantity(high, "%"), draw.Quantity(r.Full, r.Unit))
}

// xrayText adds what X-Ray shows under the same name, where that is another number.
func xrayText(m result.Metric) string {
	if m.XRay == nil {
		return ""
	}
	return " of operations, " + draw.Quantity(float64(*m.XRay), m.Unit) + " of interval means (X-Ray)"
}

func passText(pass *bool) string {
	switch {
	case pass == nil:
		return ""
	case *pass:
		return " (passed)"
	}
	return " (failed)"
}

func checkText(c result.Check) string {
	verdict := "failed"
	switch {
	case c.Reason != "":
		verdict = "undecided: " + c.Reason
	case c.Passed:
		verdict = "passed"
	}
	text := c.Text
	if c.Window != "" {
		text += " (" + c.Window + ")"
	}
	return fmt.Sprintf("%s: %s, measured %s", text, verdict, draw.Quantity(float64(c.Value), c.Unit))
}

// statisticHeads are the columns of every table of statistics after the columns of text.
var statisticHeads = []string{"mean", "median", "p95", "p99", "p99.9", "max", "CV"}

func (s *Statistic) texts(unitName string) []string {
	out := make([]string, 0, len(statisticHeads))
	for _, v := range []result.Number{s.Mean, s.Median, s.P95, s.P99, s.P999, s.Max} {
		out = append(out, draw.Amount(float64(v), unitName))
	}
	return append(out, draw.Percent(float64(s.CV)))
}

func statisticTable(r *Result) draw.Table {
	t := draw.Table{Heads: append([]string{"window", "series", "count"}, statisticHeads...), Left: 2, Grouped: true}
	for i := range r.Rows {
		s := &r.Rows[i]
		t.Add(append([]string{windowLabel(s.Window), seriesLabel(s.Series, s.Kind), draw.Count(s.Count)}, s.texts(r.Unit)...)...)
	}
	return t
}

func windowLabel(name string) string {
	if name == "" {
		return "whole result"
	}
	return name
}

// seriesLabel names a series; service and response time are always named.
func seriesLabel(name, kind string) string {
	switch {
	case kind == "":
		return name
	case name == "":
		return kind + " time"
	}
	return name + ", " + kind + " time"
}

// lineLabel names a line of a chart, which for latency also says what its points are.
func lineLabel(s *result.Series) string {
	label := seriesLabel(s.Name, s.Kind)
	if s.Statistic == "" {
		return label
	}
	return label + ", " + s.Statistic
}

// extent is the stretch of time, in seconds, that the chart of r shows.
func (r *Result) extent() (from, to float64) {
	from, to = float64(r.FromNanos)/1e9, float64(r.ToNanos)/1e9
	if to > from {
		return from, to
	}
	for _, s := range r.Series {
		if n := len(s.Points); n > 0 {
			to = max(to, s.Points[n-1].Seconds)
		}
	}
	return from, to
}

func displayName(d *Document) string {
	if d.Scenario.DisplayName != "" {
		return d.Scenario.DisplayName
	}
	return d.Scenario.Name
}

func targetLine(d *Document) string {
	text := fmt.Sprintf("%s (%s), %d nodes", d.Target.Name, d.Target.Provider, len(d.Target.Nodes))
	if d.Target.Name == d.Target.Provider {
		text = fmt.Sprintf("%s, %d nodes", d.Target.Name, len(d.Target.Nodes))
	}
	if len(d.Target.Nodes) == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if d.Target.Simulated {
		text += ", simulated"
	}
	return text
}

// banner writes a warning over the whole width.
func (p *page) banner(text string) {
	for _, l := range draw.Wrap(text, p.width-1) {
		p.line(p.Warning(draw.Fill(" "+l, p.width)))
	}
}

func workloadTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"workload", "group", "VMs", "time", "to complete", "ops", "bytes", "IOPS", "bandwidth",
		"errors", "not issued", "CPU cores"}, Left: 2}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		complete := "–"
		if w.CompletionNanos > 0 {
			complete = draw.Duration(w.CompletionNanos)
		}
		t.Add(w.Title(), w.Group, fmt.Sprint(w.VMs), draw.Duration(w.ToNanos-w.FromNanos), complete,
			draw.Count(w.Operations), unit.FormatBytes(int64(w.Bytes)), draw.Quantity(float64(w.OperationsRate), ""),
			draw.Quantity(float64(w.BytesRate), "B/s"), draw.Count(w.ErrorCount), notIssued(w), w.coresText())
	}
	return t
}

func notIssued(w *Workload) string {
	if w.Due == 0 {
		return "–"
	}
	return draw.Count(w.NotIssued) + " of " + draw.Count(w.Due)
}

func latencyTable(d *Document) draw.Table {
	t := draw.Table{Heads: append([]string{"workload", "direction", "time", "ops"}, statisticHeads...), Left: 3}
	for i := range d.Workloads {
		for j := range d.Workloads[i].Latency {
			l := &d.Workloads[i].Latency[j]
			row := Statistic{Mean: l.Mean, Median: l.Median, P95: l.P95, P99: l.P99, P999: l.P999, Max: l.Max, CV: l.CV}
			t.Add(append([]string{d.Workloads[i].Title(), l.Direction, l.Kind, draw.Count(l.Count)}, row.texts("ns")...)...)
		}
	}
	return t
}

func (p *page) workloads(d *Document) {
	if len(d.Workloads) == 0 {
		return
	}
	p.section("Workloads")
	t := workloadTable(d)
	p.table(&t)
	for i := range d.Workloads {
		w := &d.Workloads[i]
		p.item(w.Title(), w.EngineText())
		for _, line := range w.GaugeTexts() {
			p.item("", line)
		}
		for _, class := range sortedKeys(w.Errors) {
			p.item("", fmt.Sprintf("%s errors: %s", class, draw.Count(w.Errors[class])))
		}
		if w.Error != "" {
			p.text("  ", w.Title()+": "+w.Error, p.Bad)
		}
	}
	if t := latencyTable(d); len(t.Rows) > 0 {
		p.line("")
		p.table(&t)
	}
}
