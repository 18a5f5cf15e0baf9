package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// PointStats are the statistics of the points of one series in [from, to) of the run's axis. Percentiles of points use the
// nearest-rank definition, the coefficient of variation the sample standard deviation (divided by n−1).
func PointStats(points result.Points, from, to int64) result.Stats {
	var values []float64
	first, last, gaps := -1, -1, 0
	for i, p := range points {
		if at := p.Seconds * 1e9; at < float64(from) || at >= float64(to) {
			continue
		}
		if isMissing(p.Value) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		values = append(values, p.Value)
	}
	if first >= 0 {
		gaps = last - first + 1 - len(values)
	}
	s := noStats()
	s.Count, s.Gaps = uint64(len(values)), gaps
	if len(values) == 0 {
		return s
	}
	slices.Sort(values)
	mean, deviation := meanDeviation(values)
	s.Mean, s.Median = result.Number(mean), result.Number(medianOf(values))
	s.P95, s.P99, s.P999 = percentile(values, 0.95), percentile(values, 0.99), percentile(values, 0.999)
	s.Min, s.Max = result.Number(values[0]), result.Number(values[len(values)-1])
	if mean > 0 { // a relative scatter says nothing of values around zero
		s.CV = result.Number(deviation / mean)
	}
	return s
}

// OperationStats are the statistics of the operations in h and of unfinished ones, which never completed and count as longer than
// all others; waited has the times that some of them waited at least, and may be nil. A percentile that falls among the unfinished
// ones is the largest value of h, or that of waited if it is larger, and listed in AtLeast.
func OperationStats(h *stat.Histogram, unfinished uint64, waited *stat.Histogram) result.Stats {
	s := noStats()
	s.Unfinished = unfinished
	if h == nil {
		h = &stat.Histogram{}
	}
	if waited == nil {
		waited = &stat.Histogram{}
	}
	if h.Count()+waited.Count() == 0 {
		return s
	}
	s.Count = h.Count()
	all := h.Count() + unfinished
	percentile := func(name string, q float64) result.Number {
		if q > 0.5 && all < stat.PercentileNeeds(q) {
			return result.Number(nan)
		}
		rank := uint64(math.Ceil(q * float64(all)))
		if rank > h.Count() {
			s.AtLeast = append(s.AtLeast, name)
			if waited.Count() == 0 {
				return result.Number(h.Max())
			}
			return result.Number(max(float64(h.Max()), waited.AtRank(rank-h.Count())))
		}
		return result.Number(h.AtRank(rank))
	}
	s.Mean, s.Median = result.Number(h.Mean()), percentile("median", 0.5)
	if n := h.Count() + waited.Count(); waited.Count() > 0 {
		s.Mean = result.Number(max((h.Sum()+waited.Sum())/float64(n), h.Sum()/float64(max(h.Count(), 1))))
	}
	s.P95, s.P99, s.P999 = percentile("p95", 0.95), percentile("p99", 0.99), percentile("p999", 0.999)
	if unfinished > 0 {
		s.AtLeast = append(s.AtLeast, "mean", "max")
	}
	s.Max = result.Number(max(h.Max(), waited.Max()))
	if h.Count() > 0 {
		s.Min, s.CV = result.Number(h.Min()), result.Number(h.StdDev()/h.Mean())
	}
	return s
}

// Statistics returns the statistics of one kind of time.
func (t *Times) Statistics(kind string) *result.Stats {
	h := t.Service()
	if kind == "response" {
		h = cmp.Or(t.Response(), h)
	}
	s := OperationStats(h, t.Unfinished, &t.waited)
	s.Untimed = t.Untimed
	return &s
}

// Empty reports whether there was no operation.
func (t *Times) Empty() bool { return t.closed.Count()+t.open.Count()+t.Unfinished == 0 }

// HungNanos is the shortest operation that counts as a stall of a closed loop. hungFactor is how much larger than the measured
// percentile the corrected one is then, which scatter alone does not cause. Cache hits and disk reads differ by more than the
// factor too, without any operation that hangs.
const (
	HungNanos  = 100e6
	hungFactor = 2.0
)

// Hung reports whether a percentile of a closed loop, as measured and corrected in nanoseconds, hides that the loop hung.
func Hung(measured, corrected float64) bool {
	return corrected >= hungFactor*measured && corrected >= HungNanos
}

// CorrectedStats are statistics that add the operations that closed loops omitted while they hung; nil without operations of a
// closed loop.
func (t *Times) CorrectedStats(kind string) *result.CorrectedStats {
	if t.closed.Count() == 0 {
		return nil
	}
	h := t.closed.Corrected(Pace(&t.closed, t.nanos), HungNanos)
	if kind == "response" {
		h.Merge(&t.response)
	} else {
		h.Merge(&t.open)
	}
	s := OperationStats(h, t.Unfinished, &t.waited)
	return &result.CorrectedStats{Mean: s.Mean, Median: s.Median, P95: s.P95, P99: s.P99, P999: s.P999, AtLeast: s.AtLeast}
}

// Pace is the time between operations of one slot of a closed loop, in nanoseconds: the mean service time, or longer if the loop
// pauses between operations and so completes fewer in nanos, the observation time over all VMs.
func Pace(h *stat.Histogram, nanos int64) uint64 {
	return uint64(max(h.Mean(), float64(nanos)/float64(h.Count())))
}

func noStats() result.Stats {
	n := result.Number(nan)
	return result.Stats{Distribution: result.Distribution{Mean: n, Median: n, P95: n, P99: n, P999: n, Max: n, Min: n, CV: n}}
}

// meanDeviation returns mean and sample standard deviation, the latter NaN for a single value.
func meanDeviation(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / float64(len(values)-1))
}

// percentile returns the smallest of sorted values with at least q·n values at or below it, NaN for too few values.
func percentile(sorted []float64, q float64) result.Number {
	if uint64(len(sorted)) < stat.PercentileNeeds(q) {
		return result.Number(nan)
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return result.Number(sorted[min(max(i, 0), len(sorted)-1)])
}
