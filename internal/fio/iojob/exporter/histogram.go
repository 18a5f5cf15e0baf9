package exporter

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/braggdev/bragg/internal/stat"
)

// Native histograms have schema 4 as in package metric: each bucket is 2^(1/16) = 4.4 % wide.
const (
	schema           = 4
	bucketsPerDouble = 1 << schema
	zeroThreshold    = 1e-10
)

// classicBounds are for scrapers without native histograms: 1, 2 and 5 of each power of ten from a microsecond to 50 seconds.
var classicBounds = func() []uint64 {
	var out []uint64
	for decade := uint64(1_000); decade <= 10_000_000_000; decade *= 10 {
		out = append(out, decade, 2*decade, 5*decade)
	}
	return out
}()

// histogram is one histogram of latencies with both kinds of buckets.
type histogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	of     *stat.Histogram
}

func newHistogram(desc *prometheus.Desc, h *stat.Histogram, labels []string) *histogram {
	return &histogram{desc: desc, of: h, labels: prometheus.MakeLabelPairs(desc, labels)}
}

// Desc implements prometheus.Metric.
func (h *histogram) Desc() *prometheus.Desc { return h.desc }

// Write implements prometheus.Metric.
func (h *histogram) Write(out *dto.Metric) error {
	count, sum := h.of.Count(), h.of.Sum()/1e9
	out.Label = h.labels
	out.Histogram = &dto.Histogram{SampleCount: &count, SampleSum: &sum, Bucket: h.classic()}
	h.native(out.Histogram)
	return nil
}

// classic counts the values up to each bound. A bucket of the record that contains a bound, 0.8 % wide, counts as above it.
func (h *histogram) classic() []*dto.Bucket {
	out := make([]*dto.Bucket, len(classicBounds))
	for i, bound := range classicBounds {
		seconds := float64(bound) / 1e9
		out[i] = &dto.Bucket{UpperBound: &seconds, CumulativeCount: new(uint64)}
	}
	at := 0
	var below uint64
	h.of.Buckets(func(bucket int, n uint64) bool {
		_, high := stat.BucketBounds(bucket)
		for at < len(out) && high > classicBounds[at] {
			*out[at].CumulativeCount = below
			at++
		}
		below += n
		return true
	})
	for ; at < len(out); at++ {
		*out[at].CumulativeCount = below
	}
	return out
}

// native adds the exponential buckets, each with the record's buckets whose middle is in it.
func (h *histogram) native(out *dto.Histogram) {
	resolution, threshold, zeros := int32(schema), float64(zeroThreshold), uint64(0)
	counts := map[int]uint64{}
	low, high := math.MaxInt, math.MinInt
	h.of.Buckets(func(bucket int, n uint64) bool {
		from, to := stat.BucketBounds(bucket)
		seconds := (float64(from) + float64(to-from)/2) / 1e9
		if seconds <= zeroThreshold {
			zeros += n
			return true
		}
		// Bucket k holds (2^((k-1)/16), 2^(k/16)].
		k := int(math.Ceil(math.Log2(seconds) * bucketsPerDouble))
		counts[k] += n
		low, high = min(low, k), max(high, k)
		return true
	})
	out.Schema, out.ZeroThreshold, out.ZeroCount = &resolution, &threshold, &zeros
	if len(counts) == 0 {
		return
	}
	offset, length := int32(low), uint32(high-low+1)
	out.PositiveSpan = []*dto.BucketSpan{{Offset: &offset, Length: &length}}
	var last uint64
	for k := low; k <= high; k++ {
		out.PositiveDelta = append(out.PositiveDelta, int64(counts[k])-int64(last))
		last = counts[k]
	}
}
