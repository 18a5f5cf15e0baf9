package analysis

import (
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Extent is the time range that a result covers: stretches of the run's axis, in any order. A nil Extent is the whole run.
//
// An interval belongs to a result when it lies within one stretch. An interval that crosses the border, such as that of a
// load which setup started and which continues in the run phase, has operations of both sides and cannot be split: no figure
// of the result counts it. The failures in it do count, because a failure must never be hidden. Rejected: splitting it in
// proportion to time, which would count the burst of a prefill as traffic of the run.
type Extent []result.Window

// Holds reports whether an interval belongs to the result, within borderNanos.
func (x Extent) Holds(iv *interval.Interval) bool {
	return x.HoldsStretch(iv.StartNanos, iv.EndNanos())
}

// HoldsStretch is Holds for [from, to).
func (x Extent) HoldsStretch(from, to int64) bool {
	return x == nil || slices.ContainsFunc(x, func(w result.Window) bool {
		return from >= w.FromNanos-borderNanos && to <= w.ToNanos+borderNanos
	})
}

// Meets reports whether [from, to) reaches into the result's time, by more than borderNanos.
func (x Extent) Meets(from, to int64) bool {
	return x == nil || slices.ContainsFunc(x, func(w result.Window) bool {
		return from < w.ToNanos-borderNanos && to > w.FromNanos+borderNanos
	})
}

// At reports whether a time is within the result's extent.
func (x Extent) At(moment int64) bool {
	return x == nil || slices.ContainsFunc(x, func(w result.Window) bool { return w.FromNanos <= moment && moment < w.ToNanos })
}
