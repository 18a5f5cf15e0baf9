package impact

import (
	"math"

	"github.com/braggdev/bragg/internal/stat"
)

const (
	// chance is the probability with which the whole course after an event may claim a dip though nothing happened. It is half of what
	// is promised, because the noise of storage is neither normal nor of the first order.
	chance = 0.02
	// power is how likely a dip of the detectable size is to be seen: 95 %.
	power = 1.645
	// correlationMax bounds the correlation of neighboring seconds: beyond, a baseline says nothing about its own variation.
	correlationMax = 0.95
	// floorShare of the baseline, and floorOperations, are no dip even of a baseline that does not vary at all. A load with a rate can
	// have the same count for many seconds; its deviation is taken to be countingShare of that of independent operations.
	floorShare      = 0.005
	floorOperations = 2
	countingShare   = 0.5
	// worstFactor: what the baseline did by itself, it may do a little worse.
	worstFactor = 1.3
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
	counting                     float64             // the least deviation of a second from the next, which are independent
	quantiles                    map[float64]float64 // of Student's t, by probability
}

// newNoise estimates the variation of the known values of a baseline, for one of so many scores of which each may claim a dip. grain is
// the value of one operation.
func newNoise(base []float64, scores int, grain float64) *noise {
	n := &noise{chance: chance / float64(max(scores, 1)), worst: map[int]float64{}, quantiles: map[float64]float64{}}
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
	n.floor = max(floorShare*n.mean, floorOperations*grain)
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
	size, estimate := float64(n.seconds), 0.0
	if squares > 0 && pairs > 0 {
		r := products / squares * size / float64(pairs)
		// The estimate is too small by (1+3r)/n (Kendall 1954), and of a short baseline uncertain: its upper bound counts. A negative
		// one would make long stretches look too quiet.
		estimate = min(max(0, r+(1+3*max(r, 0))/size), correlationMax)
		n.correlation = min(estimate+math.Sqrt((1-estimate*estimate)/size), correlationMax)
	}
	independent := size * (1 - n.correlation) / (1 + n.correlation)
	n.deviation = math.Sqrt(squares / size / (1 - min(1/max(independent, 1.25), 0.8)))
	n.counting = countingShare * math.Sqrt(max(n.mean*grain, 0))
	n.freedom = max(2, size*(1-estimate*estimate)/(1+estimate*estimate)-1)
	n.trend(base)
	c := newCourse(base, n) // without regard to events
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
	p := n.chance / stretches
	t, known := n.quantiles[p]
	if !known {
		t = stat.StudentQuantile(1-p, n.freedom)
		n.quantiles[p] = t
	}
	counted := n.counting * math.Sqrt(1/float64(w)+1/float64(n.seconds)) * math.Sqrt2 * math.Erfinv(1-2*p)
	return max(t*n.ofDifference(w), counted, worstFactor*n.worst[w], n.floor) + n.drift
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
