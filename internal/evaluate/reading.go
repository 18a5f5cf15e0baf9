package evaluate

import (
	"context"
	"iter"
	"slices"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/rollup"
)

// add takes one interval, whose histograms have only totals.
func add(ev *evaluator, iv *interval.Interval, grids []*analysis.Grid) {
	ev.digest.AddCounts(iv)
	ev.loads.AddGauges(iv)
	ev.stalls.Add(iv)
	ev.recover.Add(iv)
	ev.impacts.Add(iv)
	ev.gauges.add(iv, ev.phase)
	for _, g := range grids {
		g.Add(iv)
	}
	for _, r := range ev.shown {
		r.add(iv)
	}
}

// addMerged takes one interval or several that were merged, with complete histograms.
func addMerged(ev *evaluator, iv *interval.Interval) {
	ev.loads.Add(iv)
	ev.impacts.AddLatency(iv)
	for _, c := range ev.staircases {
		c.Add(iv)
	}
	ev.stages.Add(iv)
	for _, r := range ev.shown {
		r.addMerged(iv)
	}
}

// batches iterates over the intervals.
func batches(ctx context.Context, ev *evaluator, cuts rollup.Cuts) iter.Seq2[*rollup.Batch, error] {
	if !ev.in.oneByOne {
		return ev.in.Bundle.Batches(ctx, cuts)
	}
	return func(yield func(*rollup.Batch, error) bool) {
		for iv, err := range ev.in.Bundle.Intervals() {
			one := []interval.Interval{iv}
			if !yield(&rollup.Batch{Each: one, Merged: one, Seconds: one}, err) {
				return
			}
		}
	}
}

// cutsOf returns all times at which addMerged distinguishes intervals.
func cutsOf(ev *evaluator) rollup.Cuts {
	at := ev.impacts.Borders()
	for _, c := range ev.staircases {
		at = append(at, c.Borders()...)
	}
	at = append(at, ev.stages.Borders()...)
	var cells []rollup.Division
	for _, r := range ev.shown {
		if r.latency == nil {
			continue
		}
		for _, w := range r.extent {
			at = append(at, w.FromNanos, w.ToNanos)
		}
		at = append(at, r.latency.Borders()...)
		d := rollup.Division{FromNanos: r.latency.FromNanos - r.latency.LeadNanos, WidthNanos: r.latency.BinNanos}
		if d.WidthNanos > 0 && !slices.Contains(cells, d) {
			cells = append(cells, d)
		}
	}
	slices.Sort(at)
	return rollup.Cuts{AtNanos: slices.Compact(at), Cells: cells}
}
