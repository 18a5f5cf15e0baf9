package evaluate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// nodeRecord holds the cluster metrics of results.
type nodeRecord struct {
	samples map[string][]result.Sample // by metric, in order; other metrics are not kept
	nodes   []result.NodeInfo          // of the target
}

func newNodeRecord(results []scenario.Result, nodes []result.NodeInfo) nodeRecord {
	n := nodeRecord{map[string][]result.Sample{}, nodes}
	for _, r := range results {
		if r.Source == scenario.FromMetric {
			n.samples[r.Metric] = nil
			if r.Metric == cpuMegahertz {
				n.samples[cpuPercent] = nil
			}
		}
	}
	return n
}

// add takes a sample of the record, if it is one of those.
func (n *nodeRecord) add(s *result.Sample) {
	if s.Name != metric.NodeValue {
		return
	}
	if list, wanted := n.samples[s.Labels["metric"]]; wanted {
		n.samples[s.Labels["metric"]] = append(list, *s)
	}
}

// fullCPU returns how many MHz 100 % are, for one node or for all nodes that an aggregate sums up; 0 if unknown, and for
// single nodes that differ. The value of a node is the median of its readings.
func (n *nodeRecord) fullCPU(aggregate string) float64 {
	percent, ratios := map[string]float64{}, map[string][]float64{}
	at := func(s *result.Sample) string { return fmt.Sprint(s.AtNanos, s.Labels["node"]) }
	for i := range n.samples[cpuPercent] {
		percent[at(&n.samples[cpuPercent][i])] = n.samples[cpuPercent][i].Value
	}
	for i := range n.samples[cpuMegahertz] {
		s := &n.samples[cpuMegahertz][i]
		if p := percent[at(s)]; p >= 0.1 && s.Value > 0 { // smaller ones may be rounded
			ratios[s.Labels["node"]] = append(ratios[s.Labels["node"]], s.Value/p*100)
		}
	}
	var nodes []float64
	for _, list := range ratios {
		slices.Sort(list)
		nodes = append(nodes, list[len(list)/2])
	}
	if len(nodes) == 0 {
		return 0
	}
	low, high, sum := slices.Min(nodes), slices.Max(nodes), 0.0
	for _, mhz := range nodes {
		sum += mhz
	}
	switch {
	case aggregate == "sum":
		return round(sum)
	case high <= 1.01*low:
		return round(high)
	}
	return 0
}

// order lists nodes in the target's order, then unknown nodes.
func (n *nodeRecord) order(byNode map[string][]result.Sample) []result.NodeInfo {
	var list []result.NodeInfo
	for _, node := range n.nodes {
		if byNode[node.ID] != nil {
			list = append(list, node)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		if !slices.ContainsFunc(list, func(node result.NodeInfo) bool { return node.ID == id }) {
			list = append(list, result.NodeInfo{ID: id})
		}
	}
	return list
}

// holdPeriods is for how many sampling periods a reading holds if the next one is missing.
const holdPeriods = 2.5

// metricResult fills a result with a cluster metric: one series per node, or all of them aggregated.
func (ev *evaluator) metricResult(r *shown, e *sheet) {
	unit, factor := nodeUnit(r.Metric)
	e.Unit, e.Averages = unit, strings.Contains(strings.ToLower(r.Metric), "latency")
	e.Source = fmt.Sprintf("Target metric %s of every node", r.Metric)
	byNode := map[string][]result.Sample{}
	for _, s := range ev.nodes.samples[r.Metric] {
		byNode[s.Labels["node"]] = append(byNode[s.Labels["node"]], s)
		e.Simulated = e.Simulated || s.Labels["simulated"] == "true"
	}
	if len(byNode) == 0 {
		e.Missing = fmt.Sprintf("No data: the target reports no %s.", r.Metric)
		return
	}
	period := samplingPeriod(byNode)
	step := max(ev.stepOf(r.Result, e.window()),
		period.Round(time.Second))
	// Readings use the same whole seconds as all other series.
	stretch := result.Window{FromNanos: r.grid.CellStart(e.FromNanos), ToNanos: e.ToNanos}
	var lines []analysis.Line
	for _, node := range ev.nodes.order(byNode) {
		samples := within(byNode[node.ID], r.window, period, period)
		if len(samples) == 0 {
			continue
		}
		l := nodeLine(centred(samples, period), stretch, step, time.Duration(holdPeriods*float64(period)))
		l.Name = cmp.Or(node.Name, node.ID)
		for i := range l.Values {
			l.Values[i] *= factor
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		e.Missing = fmt.Sprintf("No data: the target reported no %s in the time of this result.", r.Metric)
		return
	}
	if r.Aggregate != "" {
		lines = []analysis.Line{analysis.Combine(lines, r.Aggregate)}
	}
	if r.Metric == cpuMegahertz {
		e.Full = ev.nodes.fullCPU(r.Aggregate)
	}
	for _, l := range lines {
		e.addSeries(result.Series{Name: l.Name, Points: stepPoints(l, stretch.FromNanos, step, e)}, len(lines))
	}
}

// The two readings of a node's CPU, which every target reports.
const (
	cpuMegahertz = "CpuUsage.Avg.Megahertz"
	cpuPercent   = "CpuUsage.Avg.Percent"
)

// borderNanos is how far a reading or a point may cross the border of a window and still count as inside.
const borderNanos = 25e6

// within returns the readings that cover only a window. A reading of a rate covers the period before it; about is 0 for
// instantaneous values. A window of less than two periods may have no such reading; it then uses readings that cover it
// partly.
func within(samples []result.Sample, w result.Window, period, about time.Duration) []result.Sample {
	brief := w.ToNanos-w.FromNanos < 2*int64(period)
	return slices.DeleteFunc(slices.Clone(samples), func(s result.Sample) bool {
		if brief {
			return s.AtNanos-int64(period) >= w.ToNanos || s.AtNanos <= w.FromNanos
		}
		return s.AtNanos-int64(about) < w.FromNanos-borderNanos || s.AtNanos > w.ToNanos+borderNanos
	})
}

// centred moves readings to the midpoint of the time they cover: a reading of a rate covers the period before it.
func centred(samples []result.Sample, period time.Duration) []result.Sample {
	out := slices.Clone(samples)
	for i := range out {
		out[i].AtNanos -= int64(period) / 2
	}
	return out
}

// nodeLine gives every step the last reading in it, or the previous one if that is not too old. The line has at least one step.
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

// samplingPeriod is the median time between two readings of one node, at least a second.
func samplingPeriod(byNode map[string][]result.Sample) time.Duration {
	var gaps []float64
	for _, samples := range byNode {
		for i := 1; i < len(samples); i++ {
			gaps = append(gaps, float64(samples[i].AtNanos-samples[i-1].AtNanos))
		}
	}
	return medianPeriod(gaps)
}

// medianPeriod is the median of gaps in nanoseconds, at least a second.
func medianPeriod(gaps []float64) time.Duration {
	if len(gaps) == 0 {
		return time.Second
	}
	slices.Sort(gaps)
	return max(time.Duration(gaps[len(gaps)/2]), time.Second)
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
