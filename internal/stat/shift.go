package stat

import "math"

// Shift is the mean of a new group of runs less that of a base group, for numbers that may be 0 and have no ratio: Welch's t on the
// values themselves.
type Shift struct {
	Value float64
	welch
}

// ShiftOf returns the difference of the values b and the values a, one for each run; false if a group has fewer than two, or one
// that is not finite. Resolution is the difference that shows nothing, such as the length of an interval.
func ShiftOf(a, b []float64, resolution float64) (Shift, bool) {
	ofA, okA := momentsOf(a)
	ofB, okB := momentsOf(b)
	if !okA || !okB {
		return Shift{}, false
	}
	w := welchOf(ofA, ofB)
	w.resolution = resolution
	return Shift{Value: w.shift, welch: w}, true
}

// Interval returns the bounds between which the true difference lies with a confidence.
func (s *Shift) Interval(confidence float64) (low, high float64) {
	half := s.half(confidence)
	return s.shift - half, s.shift + half
}

// moments are those of one group of at least two values.
type moments struct{ n, mean, variance float64 }

func momentsOf(values []float64) (m moments, ok bool) {
	if len(values) < 2 {
		return m, false
	}
	m.n = float64(len(values))
	for _, v := range values {
		m.mean += v / m.n
	}
	for _, v := range values {
		m.variance += (v - m.mean) * (v - m.mean) / (m.n - 1)
	}
	return m, !math.IsNaN(m.variance) && !math.IsInf(m.variance, 0)
}

// welch is the difference of the means of two groups, with what its intervals need.
type welch struct{ shift, standardError, df, resolution float64 }

// welchMin is the number of runs in each group from which Welch's approximation of the degrees of freedom is used, and for equal
// groups already one below. With fewer, they are those of the smaller group, which is conservative for any two variances (Hsu 1938;
// Mickey and Brown 1966).
const welchMin = 4

func welchOf(a, b moments) welch {
	ofA, ofB := a.variance/a.n, b.variance/b.n
	w := welch{shift: b.mean - a.mean, standardError: math.Sqrt(ofA + ofB), df: min(a.n, b.n) - 1}
	if min(a.n, b.n) >= welchMin || a.n == b.n && a.n == welchMin-1 {
		if w.df = a.n + b.n - 2; ofA+ofB > 0 {
			w.df = (ofA + ofB) * (ofA + ofB) / (ofA*ofA/(a.n-1) + ofB*ofB/(b.n-1))
		}
	}
	return w
}

// half is half of the width of an interval.
func (w *welch) half(confidence float64) float64 {
	half := w.resolution
	if w.standardError > 0 {
		half += StudentQuantile((1+confidence)/2, w.df) * w.standardError
	}
	return half
}
