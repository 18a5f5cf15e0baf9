package session

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// NodeSamples turns one reading of cluster metrics into samples of the bundle. atNanos is when it was read, on the
// run's axis; the clocks of nodes are not trusted.
func NodeSamples(readings []target.NodeSample, atNanos int64) []result.Sample {
	samples := make([]result.Sample, len(readings))
	for i, r := range readings {
		labels := map[string]string{"node": r.NodeID, "metric": r.Metric}
		if r.Simulated {
			labels["simulated"] = "true"
		}
		samples[i] = result.Sample{AtNanos: atNanos, Name: metric.NodeValue, Labels: labels, Value: r.Value}
	}
	return samples
}

// holdPeriods is for how many periods of sampling a reading holds when the next one does not come.
const holdPeriods = 2.5

// metricResult fills a result with a cluster metric: one series per node, or all of them aggregated.
func (ev *evaluator) metricResult(r scenario.Result, e *result.Evaluated) {
	unit, factor := nodeUnit(r.Metric)
	e.Unit = unit
	e.Source = fmt.Sprintf("The target's metric %s, read from every node", r.Metric)
	byNode := map[string][]result.Sample{}
	for _, s := range ev.nodes[r.Metric] {
		byNode[s.Labels["node"]] = append(byNode[s.Labels["node"]], s)
		e.Simulated = e.Simulated || s.Labels["simulated"] == "true"
	}
	if len(byNode) == 0 {
		e.Missing = fmt.Sprintf("The target delivered no %s.", r.Metric)
		return
	}
	period := samplingPeriod(byNode)
	step := max(ev.stepOf(r, result.Window{FromNanos: e.FromNanos, ToNanos: e.ToNanos}),
		period.Round(time.Second))
	// Readings stand in the same whole seconds as everything else.
	stretch := result.Window{FromNanos: ev.grid.CellStart(e.FromNanos), ToNanos: e.ToNanos}
	var lines []analysis.Line
	for _, node := range ev.nodeOrder(byNode) {
		l := nodeLine(centred(byNode[node], period), stretch, step, time.Duration(holdPeriods*float64(period)))
		l.Name = ev.nodeName(node)
		for i := range l.Values {
			l.Values[i] *= factor
		}
		lines = append(lines, l)
	}
	if r.Aggregate != "" {
		lines = []analysis.Line{analysis.Combine(lines, r.Aggregate)}
	}
	for _, l := range lines {
		ev.addSeries(e, result.Series{Name: l.Name, Points: stepPoints(l, stretch.FromNanos, step, e)}, len(lines))
	}
}

// centred moves readings to the middle of the time that they are about: a reading of a rate tells of the period before it.
func centred(samples []result.Sample, period time.Duration) []result.Sample {
	out := slices.Clone(samples)
	for i := range out {
		out[i].AtNanos -= int64(period) / 2
	}
	return out
}

// nodeLine gives every step the last reading in it, or the one before when that is not too old. There is one step at
// least.
func nodeLine(samples []result.Sample, in result.Window, step, hold time.Duration) analysis.Line {
	slices.SortStableFunc(samples, func(a, b result.Sample) int { return cmp.Compare(a.AtNanos, b.AtNanos) })
	var l analysis.Line
	next := 0
	for at := in.FromNanos; len(l.Values) == 0 || at+int64(step)/2 < in.ToNanos; at += int64(step) {
		end := at + int64(step)
		for next < len(samples) && samples[next].AtNanos < end {
			next++
		}
		value := math.NaN()
		if next > 0 && end-samples[next-1].AtNanos <= int64(max(hold, step)) {
			value = samples[next-1].Value
		}
		l.Values = append(l.Values, value)
	}
	return l
}

// samplingPeriod is the median distance of two readings of one node, at least a second.
func samplingPeriod(byNode map[string][]result.Sample) time.Duration {
	var gaps []int64
	for _, samples := range byNode {
		for i := 1; i < len(samples); i++ {
			gaps = append(gaps, samples[i].AtNanos-samples[i-1].AtNanos)
		}
	}
	if len(gaps) == 0 {
		return time.Second
	}
	slices.Sort(gaps)
	return max(time.Duration(gaps[len(gaps)/2]), time.Second)
}

// nodeOrder lists nodes in the target's order, then any that it does not know.
func (ev *evaluator) nodeOrder(byNode map[string][]result.Sample) []string {
	var order []string
	for _, n := range ev.manifest.Target.Nodes {
		if byNode[n.ID] != nil {
			order = append(order, n.ID)
		}
	}
	var rest []string
	for node := range byNode {
		if !slices.Contains(order, node) {
			rest = append(rest, node)
		}
	}
	slices.Sort(rest)
	return append(order, rest...)
}

func (ev *evaluator) nodeName(id string) string {
	for _, n := range ev.manifest.Target.Nodes {
		if n.ID == id {
			return cmp.Or(n.Name, n.ID)
		}
	}
	return id
}

// nodeUnit reads the unit at the end of an X-Ray metric's name and the factor to it. X-Ray's kilobytes are 1024 bytes.
func nodeUnit(name string) (unit string, factor float64) {
	parts := strings.Split(name, ".")
	switch parts[len(parts)-1] {
	case "Megahertz":
		return "MHz", 1
	case "Percent":
		return "%", 1
	case "KilobytesPerSecond":
		return "B/s", 1024
	case "Kilobytes":
		return "B", 1024
	case "BytesPerSecond":
		return "B/s", 1
	case "Bytes":
		return "B", 1
	case "OperationsPerSecond":
		return "IOPS", 1
	case "Milliseconds":
		return "ns", 1e6
	case "Microseconds":
		return "ns", 1e3
	}
	return "", 1
}
