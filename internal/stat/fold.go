package stat

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// A folded Histogram has either its totals, with its buckets still as text, or only Sum and Max. Nothing else of it may be used before
// Unfold. Most evaluations of one interval need only its totals, and reading the buckets into memory takes ten times as long as adding
// them to those of another Histogram straight from the text.

// errFolded means that a folded Histogram does not have the layout of AppendJSON, or contradicts itself.
var errFolded = errors.New("read histogram: not as written by this program")

// AppendExact appends the JSON of AppendJSON with sums that are exact where one number cannot hold them, for a Histogram that will be
// merged with others.
func (h *Histogram) AppendExact(dst []byte) []byte {
	exact := *h
	exact.sum, exact.sumLow = twoSum(h.sum, h.sumLow)
	exact.sumSq, exact.sumSqLow = twoSum(h.sumSq, h.sumSqLow)
	dst = exact.totals.append(dst)
	if exact.sumLow != 0 || exact.sumSqLow != 0 {
		dst = strconv.AppendFloat(append(dst, `,"sum_low":`...), exact.sumLow, 'f', -1, 64)
		dst = strconv.AppendFloat(append(dst, `,"sq_low":`...), exact.sumSqLow, 'f', -1, 64)
	}
	return exact.appendBuckets(dst)
}

// AppendFolded appends what ReadFolded reads, without buckets: the sum and the largest value.
func (h *Histogram) AppendFolded(dst []byte) []byte {
	dst = appendFloat(append(dst, `{"sum":`...), h.Sum())
	return append(strconv.AppendUint(append(dst, `,"max":`...), h.max, 10), '}')
}

// ReadFolded reads JSON of AppendJSON, AppendExact or AppendFolded, of which it keeps the text of the buckets. It reads no other layout.
func (h *Histogram) ReadFolded(r *Tokens) {
	*h = Histogram{counts: h.counts}
	if r.Optional(`{"sum":`) {
		h.sum = r.float()
		r.Literal(`,"max":`)
		h.max = r.Uint()
		r.Literal(`}`)
		return
	}
	r.Literal(`{"n":`)
	h.count = r.Uint()
	r.Literal(`,"sum":`)
	h.sum = r.float()
	r.Literal(`,"sq":`)
	h.sumSq = r.float()
	r.Literal(`,"min":`)
	h.min = r.Uint()
	r.Literal(`,"max":`)
	h.max = r.Uint()
	if r.Optional(`,"sum_low":`) {
		h.sumLow = r.float()
		r.Literal(`,"sq_low":`)
		h.sumSqLow = r.float()
	}
	r.Literal(`,"b":"`)
	end := max(bytes.IndexByte(r.Data[r.Pos:], '"'), 0)
	h.walked = r.Data[r.Pos : r.Pos+end]
	r.Pos += end
	r.Literal(`"}`)
	r.Bad = r.Bad || h.min > h.max || h.count == 0 && h.max > 0
}

// Unfold adds the values of a Histogram that may be folded. After an error h is empty.
func (h *Histogram) Unfold(o *Histogram) error {
	if o == nil || o.walked == nil {
		h.Merge(o)
		return nil
	}
	if o.count == 0 {
		return nil
	}
	last := BucketOf(o.max)
	if last >= len(h.counts) {
		h.grow(last)
	}
	if !addWalked(h.counts[:last+1], o) {
		clear(h.counts)
		*h = Histogram{counts: h.counts}
		return errFolded
	}
	h.add(&o.totals)
	return nil
}

// addWalked adds buckets of a folded Histogram, and reports whether their text is right and matches its totals. It goes byte by byte: a
// loop over buckets, each with an optional count, is slower by half because processors cannot predict where it branches.
func addWalked(counts []uint64, o *Histogram) bool {
	next, skip, first := -1, 0, -1
	var n, total uint64
	for _, c := range o.walked {
		switch {
		case c >= 'a':
			next += skip*26 + int(c-'a') + 1
			skip, n = 0, 0
			if c > 'z' || next >= len(counts) {
				return false
			}
			if first < 0 {
				first = next
			}
			counts[next]++
			total++
		case c >= 'A':
			if skip = skip*26 + int(c-'A'); c > 'Z' || skip > BucketCount {
				return false
			}
		default:
			was := max(n, 1)
			n = n*10 + uint64(c-'0')
			if c < '0' || c > '9' || n == 0 || n > math.MaxUint64/16 || next < 0 || skip > 0 {
				return false
			}
			counts[next] += n - was
			total += n - was
		}
	}
	return total == o.count && first == BucketOf(o.min) && next == len(counts)-1 && skip == 0
}
