package stream

import (
	"fmt"
	"math"
)

// kernel is one of the four loops: its name, and the bytes that one element counts for. Reading a line before it is overwritten does
// not count, as in the original.
type kernel struct {
	name  string
	bytes int64
}

var kernels = [...]kernel{{"copy", 16}, {"scale", 16}, {"add", 24}, {"triad", 24}}

// passes are the kernels over a part of the arrays a, b and c. They are unrolled by hand, which the compiler does not do: without it, a
// single thread is up to 10 % slower than vectorised C. They use ordinary stores, as compiled C does, and not those around the cache.
var passes = [len(kernels)]func(a, b, c []float64){
	func(a, _, c []float64) {
		for ; len(a) >= 8 && len(c) >= 8; a, c = a[8:], c[8:] {
			c[0], c[1], c[2], c[3] = a[0], a[1], a[2], a[3]
			c[4], c[5], c[6], c[7] = a[4], a[5], a[6], a[7]
		}
	},
	func(_, b, c []float64) {
		for ; len(b) >= 8 && len(c) >= 8; b, c = b[8:], c[8:] {
			b[0], b[1], b[2], b[3] = scalar*c[0], scalar*c[1], scalar*c[2], scalar*c[3]
			b[4], b[5], b[6], b[7] = scalar*c[4], scalar*c[5], scalar*c[6], scalar*c[7]
		}
	},
	func(a, b, c []float64) {
		for ; len(a) >= 8 && len(b) >= 8 && len(c) >= 8; a, b, c = a[8:], b[8:], c[8:] {
			c[0], c[1], c[2], c[3] = a[0]+b[0], a[1]+b[1], a[2]+b[2], a[3]+b[3]
			c[4], c[5], c[6], c[7] = a[4]+b[4], a[5]+b[5], a[6]+b[6], a[7]+b[7]
		}
	},
	func(a, b, c []float64) {
		for ; len(a) >= 8 && len(b) >= 8 && len(c) >= 8; a, b, c = a[8:], b[8:], c[8:] {
			a[0], a[1], a[2], a[3] = b[0]+scalar*c[0], b[1]+scalar*c[1], b[2]+scalar*c[2], b[3]+scalar*c[3]
			a[4], a[5], a[6], a[7] = b[4]+scalar*c[4], b[5]+scalar*c[5], b[6]+scalar*c[6], b[7]+scalar*c[7]
		}
	},
}

// scalar is the factor of scale and triad.
const scalar = 3.0

// Start values of the arrays: a is doubled once before the first repetition.
const (
	startA = 2.0
	startB = 2.0
	startC = 0.0
)

// expected returns the values of all elements after a number of repetitions.
func expected(repetitions int) (a, b, c float64) {
	a, b, c = startA, startB, startC
	for range repetitions {
		c = a
		b = scalar * c
		c = a + b
		a = b + scalar*c
	}
	return a, b, c
}

// errorMax is how far, in relation to the expected value, the elements of an array may be off on average.
const errorMax = 1e-13

// deviation is how far elements are off from a value, in sum. Not a number stays so.
func deviation(list []float64, want float64) (sum float64) {
	for _, v := range list {
		sum += math.Abs(v - want)
	}
	return sum
}

// judge checks the mean deviations of the arrays a, b and c after a number of repetitions.
func judge(mean [arrays]float64, repetitions int) error {
	a, b, c := expected(repetitions)
	for i, want := range [arrays]float64{a, b, c} {
		if off := mean[i] / math.Abs(want); !(off <= errorMax) {
			return fmt.Errorf("array %c is off by %.3g on average, relative to %g, and at most %g is allowed", 'a'+i, off, want, errorMax)
		}
	}
	return nil
}
