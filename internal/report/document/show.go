package document

import (
	"fmt"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// StatisticHeads are the columns of every table of statistics after the columns of text.
var StatisticHeads = []string{"mean", "median", "p95", "p99", "p99.9", "max", "CV"}

func CheckText(c result.Check) string {
	verdict := "failed"
	switch {
	case c.Reason != "":
		verdict = "undecided: " + c.Reason
	case c.Passed:
		verdict = "passed"
	}
	text := c.Text
	if scope := c.Window + c.Event; scope != "" {
		text += " (" + scope + ")"
	}
	if strings.HasPrefix(c.Reason, "measured ") || math.IsNaN(float64(c.Value)) {
		return text + ": " + verdict
	}
	return fmt.Sprintf("%s: %s, %s", text, verdict, MeasuredText(c))
}

// MeasuredText is the value that a threshold was compared with.
func MeasuredText(c result.Check) string {
	text := "measured "
	if c.AtLeast {
		text += "at least "
	}
	text += draw.Quantity(float64(c.Value), c.Unit)
	if c.Change != "" {
		text += ", " + c.Change
	}
	return text
}

func DisplayName(d *Document) string {
	if d.Scenario.DisplayName != "" {
		return d.Scenario.DisplayName
	}
	return d.Scenario.Name
}

func LatencyTable(d *Document) draw.Table {
	t := draw.Table{Heads: append([]string{"workload", "direction", "time", "ops"}, StatisticHeads...), Left: 3}
	for i := range d.Workloads {
		for j := range d.Workloads[i].Latency {
			l := &d.Workloads[i].Latency[j]
			t.Add(append([]string{d.Workloads[i].Title(), l.Direction, l.Kind, unit.FormatWhole(l.Count)}, Texts(l.Distribution, "ns")...)...)
		}
	}
	return t
}

// LineLabel names a line of a chart; for latency, also what its points are.
func LineLabel(s *result.Series) string {
	label := SeriesLabel(s.Name, s.Kind)
	if s.Statistic == "" {
		return label
	}
	return label + ", " + s.Statistic
}

func MetricLabel(m result.Metric) string {
	if m.Series == "" {
		return m.Name
	}
	return m.Name + " of " + m.Series
}

func PassText(pass *bool) string {
	switch {
	case pass == nil:
		return ""
	case *pass:
		return " (passed)"
	}
	return " (failed)"
}

// SeriesLabel names a series, always with service or response time.
func SeriesLabel(name, kind string) string {
	switch {
	case kind == "":
		return name
	case name == "":
		return kind + " time"
	}
	return name + ", " + kind + " time"
}

// SubjectBeside is the subject of a finding, or "" if its claim already names it.
func SubjectBeside(f finding.Finding) string {
	if strings.Contains(f.Claim, f.Subject) {
		return ""
	}
	return f.Subject
}

func TargetLine(d *Document) string {
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

func WindowLabel(name string) string {
	if name == "" {
		return "whole result"
	}
	return name
}

func WorkloadTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"workload", "group", "VMs", "time", "to complete", "ops", "bytes", "rate", "bandwidth",
		"errors", "not issued", "CPU cores"}, Left: 2}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		complete := "–"
		if w.CompletionNanos > 0 {
			complete = draw.Duration(w.CompletionNanos)
		}
		bytes, bandwidth, e := "–", "–", w.engine()
		if w.Bytes > 0 || e.DoesIO() {
			bytes, bandwidth = unit.FormatBytes(int64(w.Bytes)), draw.Quantity(float64(w.BytesRate), "B/s")
		}
		operations, rate, errors := unit.FormatWhole(w.Operations), draw.Quantity(float64(w.OperationsRate), e.RateUnit()), unit.FormatWhole(w.ErrorCount)
		if !w.counted() {
			operations, rate, errors = "–", "–", "–"
		}
		t.Add(w.Title(), w.Group, fmt.Sprint(w.VMs), draw.Duration(w.ToNanos-w.FromNanos), complete,
			operations, bytes, rate, bandwidth, errors, notIssued(w), w.CoresText())
	}
	return t
}

// XrayText adds the number that X-Ray shows under the same name, if it differs.
func XrayText(m result.Metric) string {
	if m.XRay == nil {
		return ""
	}
	return " of operations, " + draw.Quantity(float64(*m.XRay), m.Unit) + " of interval means (X-Ray)"
}

// EventText is the text of an event in the list of events; steps and operations have separate tables.
func EventText(e interval.Event) string {
	switch e.Kind {
	case interval.EventStepStarted, interval.EventStepEnded, interval.EventOperationStarted, interval.EventOperationEnded:
		return ""
	}
	text := strings.ReplaceAll(string(e.Kind), "-", " ")
	for _, part := range []string{e.Phase, e.Workload, e.Group, e.Subject, e.Message} {
		if part != "" {
			text += " · " + part
		}
	}
	if e.Error != "" {
		text += ": " + e.Error
	}
	return text
}

func StepTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"step", "phase", "outcome", "at", "took", "planned"}, Left: 3}
	for _, s := range d.Steps {
		at, took, planned := "–", "–", "–"
		if s.Started {
			at = unit.FormatClock(s.FromNanos)
		}
		if s.Ended {
			took = draw.Duration(s.ToNanos - s.FromNanos)
		}
		if s.PlannedNanos > 0 {
			planned = draw.Duration(s.PlannedNanos)
		}
		t.Add(s.Heading(), s.Phase, s.Outcome(d.Ended == EndedNotYet), at, took, planned)
	}
	return t
}

func notIssued(w *Workload) string {
	if w.Due == 0 {
		return "–"
	}
	return unit.FormatWhole(w.NotIssued) + " of " + unit.FormatWhole(w.Due)
}
