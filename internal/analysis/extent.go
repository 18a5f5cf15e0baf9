package analysis

import (
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Extent is the time that a result is about: stretches of the run's axis, in any order. A nil Extent is all of it.
//
// An interval belongs to a result when it lies within one stretch. One that reaches over the border, as that of a load
// which setup started and the run phase goes on with, holds operations of both sides and cannot be parted: no figure of
// the result counts it. The failures in it do count, because nothing may hide a failure. Rejected: sharing it by time,
// which tells the burst of a prefill as traffic of the run.
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

// At reports whether a moment is in the result's time.
func (x Extent) At(moment int64) bool {
	return x == nil || slices.ContainsFunc(x, func(w result.Window) bool { return w.FromNanos <= moment && moment < w.ToNanos })
}
