package impact

import (
	"math"
)

const (
	// chance is the probability with which the whole course after an event may claim a dip though nothing happened. It is half of what
	// is promised, because the noise of storage is neither normal nor of the first order.
	chance = 0.02
	// power is how likely a dip of the detectable size is to be seen: 95 %.
	power = 1.645
	// correlationMax bounds the correlation of neighbouring seconds: beyond, a baseline says nothing about its own variation.
	correlationMax = 0.95
	// floorShare of the baseline, and floorOperations, are no dip even of a baseline that does not vary at all.
	floorShare      = 0.005
	floorOperations = 2
)

// scales are the lengths, in seconds, of the stretches in which a dip is looked for: a short one may be deep, a long one shallow.
var scales = []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}

// noise is the variation of a baseline: seconds that depend on the previous one (autoregressive of the first order).
type noise struct {
	mean, deviation, correlation float64
	seconds                      int
	freedom                      float64 // independent values in the estimate of the deviation
	drift                        float64 // beyond chance, between the halves of the baseline
	worst                        map[int]float64
	chance, floor                float64
}

// newNoise estimates the variation of the known values of a baseline, for one of so many scores of which each may claim a dip.
func newNoise(base []float64, scores int) *noise {
	n := &noise{chance: chance / float64(max(scores, 1)), worst: map[int]float64{}}
	for _, v := range base {
		if !math.IsNaN(v) {
			n.mean += v
			n.seconds++
		}
	}
	if n.seconds == 0 {
		return n
	}
	n.mean /= float64(n.seconds)
	n.floor = max(floorShare*n.mean, floorOperations)
	var squares, products float64
	pairs := 0
	for i, v := range base {
		if math.IsNaN(v) {
			continue
		}
		squares += (v - n.mean) * (v - n.mean)
		if i > 0 && !math.IsNaN(base[i-1]) {
			products += (v - n.mean) * (base[i-1] - n.mean)
			pairs++
		}
	}
	size := float64(n.seconds)
	if squares > 0 && pairs > 0 {
		r := products / squares * size / float64(pairs)
		// The estimate is too small by (1+3r)/n (Kendall 1954), and of a short baseline uncertain: its upper bound counts. A negative
		// one would make long stretches look too quiet.
		r = max(0, r+(1+3*max(r, 0))/size)
		n.correlation = min(r+math.Sqrt(max(0, 1-r*r)/size), correlationMax)
	}
	independent := size * (1 - n.correlation) / (1 + n.correlation)
	n.deviation = math.Sqrt(squares / size / (1 - min(1/max(independent, 1.25), 0.8)))
	n.freedom = max(1, size*(1-n.correlation*n.correlation)/(1+n.correlation*n.correlation)-1)
	n.trend(base)
	c := newCourse(base, n)
	for _, w := range scales {
		if 2*w <= len(base) {
			_, lowest := c.lowest(w)
			n.worst[w] = max(0, n.mean-lowest)
		}
	}
	return n
}

// trend compares the halves of the baseline.
func (n *noise) trend(base []float64) {
	half := len(base) / 2
	first, second := newCourse(base, n).mean(0, half), newCourse(base, n).mean(half, len(base))
	if fall := first - second; fall > 3*math.Sqrt2*n.deviationOf(half) {
		n.drift = fall
	}
}

// deviationOf is the standard deviation of the mean over w seconds.
func (n *noise) deviationOf(w int) float64 {
	size, r := float64(max(w, 1)), n.correlation
	sum := (1+r)/(1-r)/size - 2*r*(1-math.Pow(r, size))/(size*size*(1-r)*(1-r))
	return n.deviation * math.Sqrt(max(sum, 0))
}

// ofDifference is the standard deviation of the difference between a mean over w seconds and that of the baseline.
func (n *noise) ofDifference(w int) float64 {
	return math.Hypot(n.deviationOf(w), n.deviationOf(n.seconds))
}

// limit is how far the mean over w of looked seconds may be below the baseline by chance: the quantile of Student's t for all
// stretches that are looked at, or what the baseline did by itself.
func (n *noise) limit(w, looked int) float64 {
	stretches := math.Max(1, 2*float64(looked)/float64(w)) * float64(scalesOf(looked))
	t := studentQuantile(n.chance/stretches, n.freedom)
	return max(t*n.ofDifference(w), n.worst[w], n.floor) + n.drift
}

// detectable is the loss over w seconds that is seen with a probability of 95 %, as a share of the baseline.
func (n *noise) detectable(w, looked int) float64 {
	return (n.limit(w, looked) + power*n.ofDifference(w)) / n.mean
}

// scalesOf counts the scales of a course.
func scalesOf(looked int) int {
	count := 0
	for _, w := range scales {
		if w <= looked {
			count++
		}
	}
	return max(count, 1)
}

// studentQuantile returns the t that a variable of Student's distribution exceeds with probability p: algorithm 396 (Hill 1970), whose
// relative error is below 1e-4 for the freedoms that matter.
func studentQuantile(p, freedom float64) float64 {
	p *= 2
	n := freedom
	switch {
	case n < 1.5:
		return 1 / math.Tan(p*math.Pi/2)
	case math.Abs(n-2) < 0.05:
		return math.Sqrt(2/(p*(2-p)) - 2)
	}
	a := 1 / (n - 0.5)
	b := 48 / (a * a)
	c := ((20700*a/b-98)*a-16)*a + 96.36
	d := ((94.5/(b+c)-3)/b + 1) * math.Sqrt(a*math.Pi/2) * n
	y := math.Pow(d*p, 2/n)
	if y > 0.05+a {
		x := -math.Sqrt2 * math.Erfinv(1-p)
		y = x * x
		if n < 5 {
			c += 0.3 * (n - 4.5) * (x + 0.6)
		}
		c = (((0.05*d*x-5)*x-7)*x-2)*x + b + c
		y = (((((0.4*y+6.3)*y+36)*y+94.5)/c-y-3)/b + 1) * x
		y = math.Expm1(a * y * y)
	} else {
		y = ((1/(((n+6)/(n*y)-0.089*d-0.822)*(n+2)*3)+0.5/(n+4))*y-1)*(n+1)/(n+2) + 1/y
	}
	return math.Sqrt(n * y)
}
