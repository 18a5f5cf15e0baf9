package evaluate

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// gaugeGroup is the heading of the gauges that generators measured in addition to operations.
const gaugeGroup = "Gauges of loads"

// gaugeRecord holds the values of each gauge in the seconds of the run phase, over all VMs together: a line for each VM would take
// as much memory as the record.
type gaugeRecord map[gaugeKey]*gaugeLine

type gaugeLine struct {
	cells []gaugeCell
	last  analysis.LastValues
}

type gaugeKey struct {
	workload string
	number   int
}

// gaugeCell is the integral of a gauge over the time of a cell in which it was known, over all VMs.
type gaugeCell struct {
	sum, nanos float64
	last       float64 // the mean of what each VM reported last, up to this cell
}

func (c gaugeCell) mean() float64 { return c.sum / c.nanos }

func (g gaugeRecord) add(iv *interval.Interval, phase result.Window) {
	at := iv.EndNanos() - 1
	if iv.Prefill || at < phase.FromNanos || at >= phase.ToNanos {
		return
	}
	cell := int((at - phase.FromNanos) / int64(analysis.CellLength))
	for i, v := range iv.Gauges {
		line := g[gaugeKey{iv.Workload, i}]
		if line == nil {
			line = &gaugeLine{}
			g[gaugeKey{iv.Workload, i}] = line
		}
		for len(line.cells) <= cell {
			line.cells = append(line.cells, gaugeCell{})
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			length := float64(max(iv.LengthNanos, 1))
			c := &line.cells[cell]
			c.sum, c.nanos, c.last = c.sum+v*length, c.nanos+length, line.last.Add(iv, v)
		}
	}
}

// results returns a result for each gauge that the engine of a load names, in the order in which the loads began.
func (g gaugeRecord) results(m *result.Manifest, loads []result.LoadSummary, phase result.Window, windows []result.Window) []result.Evaluated {
	var all []result.Evaluated
	seen := map[string]bool{}
	for j := range loads {
		workload := loads[j].Workload
		if seen[workload] {
			continue
		}
		seen[workload] = true
		for i, gauge := range m.Engines[workload].Gauges {
			line := g[gaugeKey{workload, i}]
			if line == nil {
				continue
			}
			cells := line.cells
			name := workload + ": " + gauge.Name
			e := sheet{windows: windows, Evaluated: result.Evaluated{
				Name: name, Title: name, Type: "metric", Unit: gauge.Unit, Aggregate: "mean", ReportGroup: gaugeGroup, Gauge: true,
				Source:    fmt.Sprintf("What the generator of workload %q measured, the mean over its VMs%s", workload, soFarText(gauge)),
				Simulated: m.Target.Simulated, FromNanos: phase.FromNanos, ToNanos: phase.ToNanos,
				Series: []result.Series{}, Stats: []result.Stats{},
			}}
			var points result.Points
			for c, cell := range cells {
				value := cell.mean()
				if gauge.SoFar && cell.nanos > 0 {
					value = cell.last
				}
				points = append(points, result.Point{Seconds: float64(middleOf(c, phase)) / 1e9, Value: value})
			}
			e.addGauge(workload, gauge, points, cells)
			all = append(all, e.Evaluated)
		}
	}
	return all
}

func soFarText(g interval.Gauge) string {
	if g.SoFar {
		return ", from its start up to then; the value of a window is its last"
	}
	return ""
}

// addGauge is addSeries, with means over time: the first second of a load and its last are not whole. Of a gauge so far, the last value of a
// window is its mean and median.
func (e *sheet) addGauge(name string, gauge interval.Gauge, points result.Points, cells []gaugeCell) {
	e.addStats(name, "", halfOf(points), func(from, to int64) result.Stats {
		if gauge.SoFar {
			return lastStats(points, from, to)
		}
		stats := analysis.PointStats(points, from, to)
		stats.MeanBounds = analysis.MeanBounds(points, from, to)
		var whole gaugeCell
		for i, p := range points {
			if at := p.Seconds * 1e9; at >= float64(from) && at < float64(to) {
				whole.sum, whole.nanos = whole.sum+cells[i].sum, whole.nanos+cells[i].nanos
			}
		}
		if stats.Count > 0 {
			stats.MoveMean(whole.mean())
		}
		return stats
	})
	e.addLine(result.Series{Name: name, Points: points}, 1)
}

func lastStats(points result.Points, from, to int64) result.Stats {
	s := analysis.PointStats(points, from, to)
	if s.Count == 0 {
		return s
	}
	for _, p := range points {
		if at := p.Seconds * 1e9; at >= float64(from) && at < float64(to) && !math.IsNaN(p.Value) {
			s.Mean = result.Number(p.Value)
		}
	}
	s.Median, s.P95, s.P99, s.P999, s.CV = s.Mean, s.Mean, s.Mean, s.Mean, result.Number(math.NaN())
	return s
}

// middleOf is the middle of a cell, the last of which ends with the phase: what a load knows at its end only belongs to it.
func middleOf(cell int, phase result.Window) int64 {
	from := phase.FromNanos + int64(cell)*int64(analysis.CellLength)
	return (from + min(from+int64(analysis.CellLength), phase.ToNanos)) / 2
}
