package stat

import "math"

// coarseShift makes one bucket of a Coarse of 2^coarseShift buckets of a Histogram, so that a quantile is within 2 %.
const coarseShift = 2

// Coarse is a small histogram: one is kept for every second of a run. It holds the buckets between its smallest and its largest value.
type Coarse struct {
	low    int // number of the first bucket
	counts []uint32
	count  uint64
}

// Add adds the values of h.
func (c *Coarse) Add(h *Histogram) {
	if h == nil || h.count == 0 {
		return
	}
	bottom, top := h.used()
	c.hold(bottom>>coarseShift, (top-1)>>coarseShift)
	for i := bottom; i < top; {
		// The buckets of one coarse bucket are summed first.
		end, sum := min((i>>coarseShift+1)<<coarseShift, top), uint64(0)
		at := i>>coarseShift - c.low
		for _, n := range h.counts[i:end] {
			sum += n
		}
		c.counts[at] += uint32(min(sum, math.MaxUint32))
		i = end
	}
	c.count += h.count
}

// Merge adds the values of o.
func (c *Coarse) Merge(o *Coarse) {
	if len(o.counts) == 0 {
		return
	}
	c.hold(o.low, o.low+len(o.counts)-1)
	for i, n := range o.counts {
		c.counts[o.low+i-c.low] += n
	}
	c.count += o.count
}

// hold makes room for buckets from first to last.
func (c *Coarse) hold(first, last int) {
	if len(c.counts) == 0 {
		c.low = first
	}
	if first < c.low {
		c.counts, c.low = append(make([]uint32, c.low-first), c.counts...), first
	}
	if n := last - c.low + 1; n > len(c.counts) {
		c.counts = append(c.counts, make([]uint32, n-len(c.counts))...)
	}
}

// Count is how many values there are.
func (c *Coarse) Count() uint64 { return c.count }

// Quantile returns the middle of the bucket of the nearest rank, NaN if there are too few values for it.
func (c *Coarse) Quantile(q float64) float64 {
	if c.count < PercentileNeeds(q) {
		return math.NaN()
	}
	rank, seen := uint64(math.Ceil(q*float64(c.count))), uint64(0)
	for i, n := range c.counts {
		if seen += uint64(n); seen >= rank {
			low, _ := BucketBounds((c.low + i) << coarseShift)
			_, high := BucketBounds((c.low+i+1)<<coarseShift - 1)
			return float64(low) + float64(high-low)/2
		}
	}
	return math.NaN()
}
