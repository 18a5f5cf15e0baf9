package metric

import (
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/braggdev/bragg/internal/stat"
)

// Native histograms have exponential buckets: of schema 4, each 2^(1/16) = 4.4 % wide. They are coarser than those of
// the record, so percentiles in reports never come from here.
const (
	schema           = 4
	bucketsPerDouble = 1 << schema
	// indexMin is the bucket of one nanosecond in seconds, indexMax the bucket of the longest time that a uint64 can hold.
	indexMin = -30 * bucketsPerDouble
	indexMax = 35 * bucketsPerDouble
)

// indexOf maps a bucket of the record to the exponential bucket that contains its midpoint.
var indexOf = sync.OnceValue(func() []int16 {
	table := make([]int16, stat.BucketCount)
	for i := range table {
		low, high := stat.BucketBounds(i)
		seconds := (float64(low) + float64(high-low)/2) / 1e9
		if seconds == 0 {
			table[i] = math.MinInt16
			continue
		}
		// Bucket k holds (2^((k-1)/16), 2^(k/16)].
		k := math.Ceil(math.Log2(seconds) * bucketsPerDouble)
		table[i] = int16(min(max(k, indexMin), indexMax))
	}
	return table
})

// exponential adds up histograms of the record as one growing native histogram.
type exponential struct {
	counts [indexMax - indexMin + 1]uint64
	low    int // of the buckets in use, as offset in counts
	high   int // after the last one; 0: none
	zeros  uint64
	count  uint64
	sum    float64
}

func (e *exponential) add(h *stat.Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	table := indexOf()
	h.Buckets(func(bucket int, n uint64) bool {
		if table[bucket] == math.MinInt16 {
			e.zeros += n
			return true
		}
		i := int(table[bucket]) - indexMin
		e.counts[i] += n
		if e.high == 0 || i < e.low {
			e.low = i
		}
		e.high = max(e.high, i+1)
		return true
	})
	e.count += h.Count()
	e.sum += h.Sum() / 1e9
}

// histogram returns the current state. The store keeps the value, so every call creates a new one.
func (e *exponential) histogram() *histogram.Histogram {
	h := &histogram.Histogram{
		Schema: schema, ZeroThreshold: 1e-10, ZeroCount: e.zeros, Count: e.count, Sum: e.sum,
	}
	if e.high == 0 {
		return h
	}
	h.PositiveSpans = []histogram.Span{{Offset: int32(e.low + indexMin), Length: uint32(e.high - e.low)}}
	h.PositiveBuckets = make([]int64, e.high-e.low)
	var last uint64
	for i, n := range e.counts[e.low:e.high] {
		h.PositiveBuckets[i] = int64(n) - int64(last)
		last = n
	}
	return h
}
