// Package stat has the pure mathematics of the program: histograms and quantiles, and the comparison of groups of runs. It
// does no I/O, reads no clock and does not log.
//
// All displayed percentiles come from a Histogram, those of several sources from the merged Histogram, never from an average of
// percentiles.
//
//	histogram.go, totals.go, encode.go, read.go  the Histogram and its JSON
//	fold.go      histograms of which only totals are read
//	coarse.go    a small histogram, one for every second of a load
//	between.go   bounds of a quantile from ranks, and how strongly operations correlate
//	blocks.go    error of the mean of points that correlate
//	ratio.go     ratio of two groups of runs, with interval, detectable change and Holm's correction
//	change.go    changes of level in a history
//	shift.go     difference of two groups of runs, and Welch's t for it and ratio.go
//	student.go   Student's t and the beta function
package stat

import (
	"math"
	"math/bits"
	"slices"
)

// The histogram is log-linear: values below 2^subBits are counted exactly, and every further power of two is divided into
// 2^subBits buckets of equal width. A bucket is therefore at most 1/128 = 0.79 % of its value wide, and a quantile, reported as
// the middle of its bucket, is within 0.4 % of a recorded value. Every uint64 has a bucket; nothing is clamped.
const (
	subBits     = 7
	subCount    = 1 << subBits
	BucketCount = (64 - subBits + 1) * subCount
)

// BucketOf returns the bucket of value v.
func BucketOf(v uint64) int {
	if v < subCount {
		return int(v)
	}
	exponent := bits.Len64(v) - 1 - subBits
	return (exponent+1)*subCount + int(v>>uint(exponent)) - subCount
}

// BucketBounds returns the smallest and the largest value that bucket i holds.
func BucketBounds(i int) (low, high uint64) {
	if i < subCount {
		return uint64(i), uint64(i)
	}
	exponent := uint(i/subCount - 1)
	low = uint64(i%subCount+subCount) << exponent
	return low, low + (1<<exponent - 1)
}

// Histogram counts values, in nanoseconds wherever the program records latency. The zero value is empty and ready;
// its buckets grow only as far as the largest value, so that a Histogram of fast operations is small. Minimum,
// maximum and sum are exact. A Histogram has one owner at a time; it has no lock.
type Histogram struct {
	counts []uint64
	totals
	walked []byte // the text of the buckets if it is folded
}

// Record adds one value. It allocates only when v is larger than any value before.
func (h *Histogram) Record(v uint64) { h.RecordN(v, 1) }

// RecordN adds n equal values.
func (h *Histogram) RecordN(v, n uint64) {
	if n == 0 {
		return
	}
	i := BucketOf(v)
	if i >= len(h.counts) {
		h.grow(i)
	}
	h.counts[i] += n
	f := float64(v)
	h.sum += f * float64(n)
	h.sumSq += f * f * float64(n)
	if h.count == 0 || v < h.min {
		h.min = v
	}
	if v > h.max {
		h.max = v
	}
	h.count += n
}

func (h *Histogram) grow(i int) {
	want := min(BucketCount, (i/subCount+1)*subCount)
	h.counts = append(h.counts, make([]uint64, want-len(h.counts))...)
}

// Reserve makes room for every value, so that Record never allocates afterwards (59 KiB).
func (h *Histogram) Reserve() {
	if len(h.counts) < BucketCount {
		h.grow(BucketCount - 1)
	}
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	low, high := h.used()
	clear(h.counts[min(low, len(h.counts)):min(high, len(h.counts))])
	*h = Histogram{counts: h.counts}
}

// used returns the range of buckets outside which all are empty.
func (h *Histogram) used() (low, high int) {
	if h.count == 0 {
		return 0, 0
	}
	return BucketOf(h.min), BucketOf(h.max) + 1
}

// Merge adds all values of o, which is not changed. Merging is associative and commutative, and exact for sums of
// whole numbers up to 2¹⁰⁰.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.count == 0 {
		return
	}
	low, high := o.used()
	if high > len(h.counts) {
		h.grow(high - 1)
	}
	into := h.counts[low:high]
	for i, n := range o.counts[low:high] {
		into[i] += n
	}
	h.add(&o.totals)
}

// Difference returns h less the values of o, which are among those of h. Minimum and maximum are exact unless they were those of o;
// then they are the bounds of their buckets.
func Difference(h, o *Histogram) *Histogram {
	rest := &Histogram{}
	if h == nil || h.count == 0 {
		return rest
	}
	if o == nil || o.count == 0 {
		return h.Clone()
	}
	low, high := h.used()
	bottom, top := -1, 0
	rest.grow(high - 1)
	for i := low; i < high; i++ {
		n := h.counts[i]
		if i < len(o.counts) {
			n -= min(n, o.counts[i])
		}
		if rest.counts[i] = n; n > 0 {
			if bottom < 0 {
				bottom = i
			}
			top, rest.count = i, rest.count+n
		}
	}
	if rest.count == 0 {
		return rest
	}
	rest.sum, rest.sumSq = max(0, h.Sum()-o.Sum()), max(0, h.squares()-o.squares())
	rest.min, _ = BucketBounds(bottom)
	_, rest.max = BucketBounds(top)
	rest.min, rest.max = max(rest.min, h.min), min(rest.max, h.max)
	return rest
}

// Corrected returns the histogram of a closed loop as if it had continued to issue an operation every expected nanoseconds while
// one took from nanoseconds or longer: for each such value v it has v−e, v−2e, … down to e as well. This is the correction of
// HdrHistogram for coordinated omission, on the midpoints of buckets.
func (h *Histogram) Corrected(expected, from uint64) *Histogram {
	c := h.Clone()
	if expected == 0 {
		return c
	}
	h.Buckets(func(bucket int, n uint64) bool {
		low, high := BucketBounds(bucket)
		v := min(max(low+(high-low)/2, h.min), h.max)
		if v < from || v < 2*expected {
			return true
		}
		first, last := BucketOf(expected), BucketOf(v-expected)
		for i := first; i <= last; i++ {
			low, high := BucketBounds(i)
			low, high = max(low, expected), min(high, v-expected)
			if high < low {
				continue
			}
			// As many multiples k·e, k ≥ 1, as leave v−k·e within the bucket.
			if missing := (v-low)/expected - (v-high-1)/expected; missing > 0 {
				c.RecordN(low+(high-low)/2, n*missing)
			}
		}
		return true
	})
	return c
}

// Clone returns an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.counts = slices.Clone(h.counts)
	return &c
}

// Quantile returns the value at q in [0, 1] by the nearest-rank definition (the smallest value with at least q·n
// values at or below it): the middle of its bucket, never outside [Min, Max]. NaN when empty.
func (h *Histogram) Quantile(q float64) float64 {
	return h.AtRank(uint64(math.Ceil(q * float64(h.count))))
}

// AtRank returns the value of which rank values, clamped to [1, Count], are at or below it, as Quantile does.
func (h *Histogram) AtRank(rank uint64) float64 {
	if h.count == 0 {
		return math.NaN()
	}
	rank = min(max(rank, 1), h.count)
	var seen uint64
	bottom, top := h.used()
	for i := bottom; i < top; i++ {
		n := h.counts[i]
		seen += n
		if n > 0 && seen >= rank {
			low, high := BucketBounds(i)
			middle := float64(low) + float64(high-low)/2
			return min(max(middle, float64(h.min)), float64(h.max))
		}
	}
	return float64(h.max)
}

// PercentileNeeds returns how many values are needed to show quantile q > 0.5: enough that one lies beyond it, 20 for p95, 100
// for p99, 1000 for p99.9. With fewer values, the quantile is just the largest value.
func PercentileNeeds(q float64) uint64 { return uint64(math.Round(1 / (1 - q))) }

// Percentile is Quantile for q > 0.5, and NaN when there are too few values for it.
func (h *Histogram) Percentile(q float64) float64 {
	if h.count < PercentileNeeds(q) {
		return math.NaN()
	}
	return h.Quantile(q)
}

// Buckets calls f for every bucket that is not empty, in rising order, until f returns false.
func (h *Histogram) Buckets(f func(bucket int, count uint64) bool) {
	low, high := h.used()
	for i := low; i < high; i++ {
		if n := h.counts[i]; n > 0 && !f(i, n) {
			return
		}
	}
}

// CloneOrNew returns an independent copy, or a new empty Histogram for nil.
func (h *Histogram) CloneOrNew() *Histogram {
	if h == nil {
		return &Histogram{}
	}
	return h.Clone()
}
