package steady

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

const (
	// courseBuckets bounds the memory of a Course; when they do not suffice, pairs of buckets are merged.
	courseBuckets  = 4096
	courseWidthMin = int64(1e9)
)

// Course is one load over all its VMs: operations and their response times in buckets of equal width, from one second upwards.
type Course struct {
	width   int64
	first   int64 // number of the first bucket, in widths from zero of the axis
	buckets []bucket
}

// bucket holds the operations of one bucket. Without seen it is a gap, which is not a drop to zero.
type bucket struct {
	operations float64
	times      stat.Coarse // response times
	seen       bool
}

func (b *bucket) add(o *bucket) {
	b.operations, b.seen = b.operations+o.operations, b.seen || o.seen
	b.times.Merge(&o.times)
}

// Add spreads the operations of an interval evenly over its time. Their response times count where its middle is.
func (c *Course) Add(iv *interval.Interval) {
	c.AddCounts(iv)
	c.AddTimes(iv)
}

// AddTimes adds only the response times of an interval, or of several that were merged and whose middles are in the same second.
func (c *Course) AddTimes(iv *interval.Interval) {
	if iv.LengthNanos <= 0 || iv.StartNanos < 0 {
		return
	}
	middle := (iv.StartNanos + iv.EndNanos()) / 2
	c.hold(middle, middle+1)
	times := &c.buckets[middle/c.width-c.first].times
	for i := range iv.Directions {
		times.Add(iv.Directions[i].ResponseOrService())
	}
}

// AddCounts adds only the operations.
func (c *Course) AddCounts(iv *interval.Interval) {
	from, to := iv.StartNanos, iv.EndNanos()
	if to <= from || from < 0 {
		return
	}
	c.hold(from, to)
	operations := 0.0
	for i := range iv.Directions {
		operations += float64(iv.Directions[i].Operations)
	}
	for at := from; at < to; {
		i := at / c.width
		end := min(to, (i+1)*c.width)
		b := &c.buckets[i-c.first]
		b.operations, b.seen = b.operations+operations*float64(end-at)/float64(to-from), true
		at = end
	}
}

// hold makes room for [from, to).
func (c *Course) hold(from, to int64) {
	if c.width == 0 {
		c.width, c.first = courseWidthMin, from/courseWidthMin
	}
	for c.span(from, to) > courseBuckets {
		c.halve()
	}
	if from/c.width < c.first {
		c.buckets = append(make([]bucket, c.first-from/c.width), c.buckets...)
		c.first = from / c.width
	}
	for last := (to-1)/c.width - c.first; int64(len(c.buckets)) <= last; {
		c.buckets = append(c.buckets, bucket{})
	}
}

// span is the number of buckets that would be in use with [from, to).
func (c *Course) span(from, to int64) int64 {
	last := max((to-1)/c.width, c.first+int64(len(c.buckets))-1)
	return last - min(c.first, from/c.width) + 1
}

func (c *Course) halve() {
	merged := make([]bucket, 0, len(c.buckets)/2+1)
	for i := range c.buckets {
		at := (c.first+int64(i))/2 - c.first/2
		if int64(len(merged)) <= at {
			merged = append(merged, bucket{})
		}
		merged[at].add(&c.buckets[i])
	}
	c.buckets, c.first, c.width = merged, c.first/2, c.width*2
}

// Width is how long each value of a series lasts, in nanoseconds.
func (c *Course) Width() int64 {
	if c == nil {
		return 0
	}
	return c.width
}

// Window is a part of a course: its series, whose values begin at FromNanos.
type Window struct {
	FromNanos int64
	Series    []Series // the rate, median and p99 of response time
}

// Over returns the buckets entirely within [from, to). rate is the name of operations per second. Percentiles of a second without
// enough operations are unknown.
func (c *Course) Over(from, to int64, rate string) *Window {
	w := &Window{Series: []Series{{Name: rate}, {Name: "median response time", Latency: true}, {Name: "p99 of response time", Latency: true}}}
	if c == nil || c.width == 0 {
		return w
	}
	for i := range c.buckets {
		b, start := &c.buckets[i], (c.first+int64(i))*c.width
		if start < from || start+c.width > to {
			continue
		}
		if len(w.Series[0].Values) == 0 {
			w.FromNanos = start
		}
		values := [3]float64{math.NaN(), b.times.Quantile(0.5), b.times.Quantile(0.99)}
		if b.seen {
			values[0] = b.operations / (float64(c.width) / 1e9)
		}
		for s := range values {
			w.Series[s].Values = append(w.Series[s].Values, values[s])
		}
	}
	return w
}

// Known returns the rates that are known.
func (w *Window) Known() []float64 {
	return slices.DeleteFunc(slices.Clone(w.Series[0].Values), math.IsNaN)
}
