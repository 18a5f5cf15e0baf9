package stat

import (
	"math"
	"strconv"
)

// totals are everything of a Histogram but its buckets.
type totals struct {
	count      uint64
	sum, sumSq float64
	min, max   uint64

	sumLow, sumSqLow float64 // what rounding took from the sums
}

// Count returns the number of values; Sum their sum; Min and Max are exact and 0 when empty.
func (t *totals) Count() uint64 { return t.count }
func (t *totals) Sum() float64  { return whole(t.sum, t.sumLow) }
func (t *totals) Min() uint64   { return t.min }
func (t *totals) Max() uint64   { return t.max }

// Mean returns the exact arithmetic mean, NaN when empty.
func (t *totals) Mean() float64 {
	if t.count == 0 {
		return math.NaN()
	}
	return t.Sum() / float64(t.count)
}

func (t *totals) squares() float64 { return whole(t.sumSq, t.sumSqLow) }

// StdDev returns the population standard deviation, NaN when empty.
func (t *totals) StdDev() float64 {
	if t.count == 0 {
		return math.NaN()
	}
	mean := t.Mean()
	return math.Sqrt(max(0, t.squares()/float64(t.count)-mean*mean))
}

// add adds those of o. Sums are kept in two numbers, so that adding whole numbers is exact and does not depend on the order (Knuth,
// The Art of Computer Programming, volume 2, 4.2.2, theorem B).
func (t *totals) add(o *totals) {
	if t.count == 0 || o.min < t.min {
		t.min = o.min
	}
	t.max = max(t.max, o.max)
	t.count += o.count
	var rest float64
	t.sum, rest = twoSum(t.sum, o.sum)
	t.sumLow += rest + o.sumLow
	t.sumSq, rest = twoSum(t.sumSq, o.sumSq)
	t.sumSqLow += rest + o.sumSqLow
}

// twoSum returns a+b and what rounding took from it.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	bb := sum - a
	return sum, (a - (sum - bb)) + (b - bb)
}

// whole joins a sum with what rounding took from it.
func whole(sum, low float64) float64 {
	if s := sum + low; !math.IsNaN(s) {
		return s
	}
	return sum // it overflowed
}

// append writes the JSON of a Histogram up to its buckets.
func (t *totals) append(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, `{"n":`...), t.count, 10)
	dst = appendFloat(append(dst, `,"sum":`...), t.Sum())
	dst = appendFloat(append(dst, `,"sq":`...), t.squares())
	dst = strconv.AppendUint(append(dst, `,"min":`...), t.min, 10)
	return strconv.AppendUint(append(dst, `,"max":`...), t.max, 10)
}
