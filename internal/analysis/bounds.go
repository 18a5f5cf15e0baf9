package analysis

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Bounds returns the 95 % bounds of the percentiles of one kind of time of all VMs together, whose operations between two times are
// in t. How strongly operations correlate comes from the stretches of time into which the axis is cut; without enough of them there
// are no bounds, because bounds of independent operations would be far too narrow.
func (l *Latency) Bounds(kind string, t *Times, fromNanos, toNanos int64) *result.PercentileBounds {
	h := t.Service()
	if kind == "response" {
		if r := t.Response(); r != nil {
			h = r
		}
	}
	all := h.Count() + t.Unfinished
	none := result.Number(math.NaN())
	bounds := func(q float64) [2]result.Number {
		rank := uint64(math.Ceil(q * float64(all)))
		if q > 0.5 && all < stat.PercentileNeeds(q) || rank > h.Count() || rank == 0 {
			return [2]result.Number{none, none}
		}
		effect := l.designEffect(kind, uint64(h.AtRank(rank)), fromNanos, toNanos)
		if math.IsNaN(effect) {
			return [2]result.Number{none, none}
		}
		low, high := h.Between(q, t.Unfinished, effect)
		return [2]result.Number{result.Number(low), result.Number(high)}
	}
	b := &result.PercentileBounds{Median: bounds(0.5), P95: bounds(0.95), P99: bounds(0.99), P999: bounds(0.999)}
	if math.IsNaN(float64(b.Median[0])) {
		return nil
	}
	return b
}

// designEffect is that of the operations longer than nanos, from the stretches of time whose middle is between two times.
func (l *Latency) designEffect(kind string, nanos uint64, fromNanos, toNanos int64) float64 {
	var counts, hits []float64
	for i := range l.bins {
		if at := l.middle(i); at < fromNanos || at >= toNanos {
			continue
		}
		t := &l.bins[i]
		others := &t.open
		if kind == "response" {
			others = &t.response
		}
		if count := t.closed.Count() + others.Count() + t.Unfinished; count > 0 {
			counts = append(counts, float64(count))
			hits = append(hits, float64(t.closed.CountAbove(nanos)+others.CountAbove(nanos)+t.Unfinished))
		}
	}
	return stat.DesignEffect(counts, hits)
}

// meanPointsMax bounds the points from which bounds of a mean are computed. More are averaged in stretches first: the error of a mean
// depends on long stretches only.
const meanPointsMax = 2000

// MeanBounds returns the 95 % bounds of the mean of the points in [from, to) of the run's axis, or nil for too few of them.
func MeanBounds(points result.Points, from, to int64) *[2]result.Number {
	var values []float64
	for _, p := range points {
		if at := p.Seconds * 1e9; at >= float64(from) && at < float64(to) && !isMissing(p.Value) {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return nil
	}
	mean, _ := meanDeviation(values)
	off, df := stat.BootstrapError(inStretches(values, (len(values)+meanPointsMax-1)/meanPointsMax))
	if math.IsNaN(off) {
		return nil
	}
	off *= stat.StudentQuantile((1+stat.Confidence)/2, df)
	low := mean - off
	if slices.Min(values) >= 0 { // a rate is not negative, however it scatters
		low = max(0, low)
	}
	return &[2]result.Number{result.Number(low), result.Number(mean + off)}
}

// inStretches averages each stretch of length values; what is left at the end is dropped.
func inStretches(values []float64, length int) []float64 {
	if length <= 1 {
		return values
	}
	means := make([]float64, 0, len(values)/length)
	for ; len(values) >= length; values = values[length:] {
		mean, _ := meanDeviation(values[:length])
		means = append(means, mean)
	}
	return means
}
