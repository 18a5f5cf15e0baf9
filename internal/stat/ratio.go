package stat

import (
	"cmp"
	"math"
	"slices"
)

// How much two numbers may differ without a difference.
const (
	// BucketError is that of percentiles: each is the middle of a bucket of the histogram, which is at most 1/128 wide.
	BucketError = 1.0 / 128
	// Trifle is that of all others, however small their noise is: rates that a load keeps exactly have none.
	Trifle = 0.001
)

// Confidence of every interval, and the level of every test: Level = 1 − Confidence.
const (
	Confidence = 0.95
	Level      = 1 - Confidence
)

// Ratio is the number of a new group of runs over that of a base group, each as the geometric mean of its runs.
//
// It is Welch's t on the logarithms: half and double are equally far from one, exchanging the groups inverts the ratio and its
// interval, and the unit does not matter. The runs are the sample, not their operations or seconds, which correlate: only a
// repeated run shows how much the number varies from run to run.
type Ratio struct {
	Value     float64
	Low, High float64 // interval of Confidence for this number alone
	P         float64 // probability of a ratio at least as far from 1 without any difference
	// Noise is the relative difference that two runs of one group do not exceed in 95 % of pairs: the repeatability limit of
	// ISO 5725, from the spread within both groups.
	Noise float64

	welch // of the logarithms
}

// RatioOf returns the ratio of the values b to the values a, one for each run; false if a group has fewer than two, or one that is
// not positive. Resolution is the relative difference that shows nothing, such as the width of a histogram's bucket.
func RatioOf(a, b []float64, resolution float64) (Ratio, bool) {
	ofA, okA := momentsOf(logarithms(a))
	ofB, okB := momentsOf(logarithms(b))
	if !okA || !okB {
		return Ratio{}, false
	}
	r := Ratio{welch: welchOf(ofA, ofB)}
	r.resolution = math.Log1p(resolution)
	r.Value = math.Exp(r.shift)
	r.Low, r.High = r.Interval(Confidence)
	if beyond := math.Abs(r.shift) - r.resolution; beyond <= 0 {
		r.P = 1
	} else if r.standardError > 0 {
		r.P = StudentBeyond(beyond/r.standardError, r.df)
	}
	df := ofA.n + ofB.n - 2
	pooled := ((ofA.n-1)*ofA.variance + (ofB.n-1)*ofB.variance) / df
	r.Noise = math.Expm1(StudentQuantile(1-Level/2, df) * math.Sqrt(2*pooled))
	return r, true
}

// Interval returns the bounds between which the true ratio lies with a confidence.
func (r *Ratio) Interval(confidence float64) (low, high float64) {
	half := r.half(confidence)
	return math.Exp(r.shift - half), math.Exp(r.shift + half)
}

// Detectable returns the smallest relative increase that groups of this size and spread show at a level with probability power.
func (r *Ratio) Detectable(level, power float64) float64 {
	shift := r.resolution
	if r.standardError > 0 {
		shift += r.standardError * shiftToExceed(StudentQuantile(1-level/2, r.df), power, r.df)
	}
	return math.Expm1(shift)
}

// LogMoments returns the mean and the standard deviation of the logarithms of at least two values.
func LogMoments(values []float64) (mean, deviation float64) {
	m, _ := momentsOf(logarithms(values))
	return m.mean, math.Sqrt(m.variance)
}

// logarithms of values; NaN of one that is not positive.
func logarithms(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		if list[i] = math.NaN(); v > 0 {
			list[i] = math.Log(v)
		}
	}
	return list
}

// Holm returns the p values adjusted for their number by Holm's step-down method (1979): those below a level are all true
// differences with probability 1 − level, whatever the dependence between them.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted, worst := make([]float64, len(p)), 0.0
	for rank, i := range order {
		worst = max(worst, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = worst
	}
	return adjusted
}
