package fiolog

import (
	"math/bits"
	"strconv"

	"github.com/braggdev/bragg/internal/interval"
)

// The buckets of fio's histograms: values below 128 have one each, every further power of two has 64. The last contains all
// larger values.
const (
	bucketBits  = 6
	BucketCount = 29 << bucketBits
)

// Bucket returns the bucket of a latency in nanoseconds.
func Bucket(v uint64) int {
	shift := bits.Len64(v) - 1 - bucketBits
	if shift <= 0 {
		return int(v)
	}
	return min(shift<<bucketBits+int(v>>uint(shift)), BucketCount-1)
}

// histograms write one line per period and direction, with the service times of the operations that completed in it.
type histograms struct {
	length, boundary int64
	coarseness       uint
	counts           [interval.DirectionCount][]uint64
	some             [interval.DirectionCount]bool
	size             [interval.DirectionCount]int64 // of the last operation, as in fio
}

func (h *histograms) add(r *Recorder, o *operation) {
	if o.at >= h.boundary {
		h.write(r, h.boundary)
		h.boundary += (o.at-h.boundary)/h.length*h.length + h.length
	}
	if h.counts[o.direction] == nil {
		h.counts[o.direction] = make([]uint64, BucketCount)
	}
	h.counts[o.direction][Bucket(o.service)]++
	h.some[o.direction], h.size[o.direction] = true, int64(o.size)
}

// finish writes the last piece, which fio omits.
func (h *histograms) finish(r *Recorder, end int64) {
	if end >= h.boundary {
		end = h.boundary // later completions have moved the boundary
	}
	h.write(r, end)
}

// write adds the lines of the period that ends at end, if operations completed.
func (h *histograms) write(r *Recorder, end int64) {
	f := r.each.histogram
	millis := r.millis(end)
	for d := range h.counts {
		if !h.some[d] {
			continue
		}
		h.some[d] = false
		f.text = strconv.AppendInt(f.text, millis, 10)
		f.text = append(f.text, ", "...)
		f.text = append(f.text, '0'+uint8(d), ',', ' ')
		f.text = strconv.AppendInt(f.text, h.size[d], 10)
		counts := h.counts[d]
		for len(counts) > 0 {
			var n uint64
			for _, c := range counts[:1<<h.coarseness] {
				n += c
			}
			f.text = strconv.AppendUint(append(f.text, ", "...), n, 10)
			counts = counts[1<<h.coarseness:]
		}
		clear(h.counts[d])
		f.text = append(f.text, '\n')
		if len(f.text) >= f.flushAt {
			r.set.flush(f)
		}
	}
}
