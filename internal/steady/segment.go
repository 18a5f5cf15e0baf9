package steady

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/stat"
)

const (
	// levelValuesMin is the shortest level.
	levelValuesMin = 3
	// outlier is how many deviations from the running median a value may be; further ones are cut to that.
	outlier = 4.0
	// deviationMin is a floor for the noise, as a share of the mean: without noise every trace of a change would be sure.
	deviationMin = 0.005
	// changePenalty times the logarithm of the number of values is the least gain of a change, in variances of the noise.
	changePenalty = 3.0
	// differenceMax is the largest difference of neighbors that counts as noise, in deviations; withinDifference is the variance of
	// normal values within that.
	differenceMax    = 2.5
	withinDifference = 0.9112
	// correlationMax: what correlates more than that is a change, whatever made it.
	correlationMax = 0.5
	// levelSure standard errors lie between the level of a warm-up and the one after it, at least.
	levelSure = 5.0
	normalMAD = 1.4826 // standard deviation of normal values, in median absolute deviations
)

// curve is a series as it is judged: without unknown values, and without outliers. A rate is a share of its mean; a latency is the
// logarithm of its ratio to its geometric mean.
type curve struct {
	*Series
	values []float64
	at     []int     // index of each value in the series
	fit    []float64 // level at each value
}

func newCurve(s *Series) *curve {
	c := &curve{Series: s}
	for i, v := range s.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) || s.Latency && v <= 0 {
			continue
		}
		if s.Latency {
			v = math.Log(v)
		}
		c.values, c.at = append(c.values, v), append(c.at, i)
	}
	mean := stat.Mean(c.values)
	if !s.Latency && !(mean > 0) {
		c.values, c.at = nil, nil // it does nothing
		return c
	}
	for i := range c.values {
		if s.Latency {
			c.values[i] -= mean
		} else {
			c.values[i] /= mean
		}
	}
	if len(c.values) >= ValuesMin {
		c.cutOutliers()
		c.fit = levels(c.values)
	}
	return c
}

// share is the distance of two values as a share of the mean.
func (c *curve) share(low, high float64) float64 {
	if c.Latency {
		return math.Exp(high) - math.Exp(low)
	}
	return high - low
}

// cutOutliers moves values that are far from the median of the five around them to the bound of what is usual.
func (c *curve) cutOutliers() {
	n := len(c.values)
	apart := make([]float64, n)
	var five [5]float64
	for i := range c.values {
		copy(five[:], c.values[max(0, min(i-2, n-5)):])
		slices.Sort(five[:])
		apart[i] = c.values[i] - five[2]
	}
	most := outlier * max(deviation(apart), deviationMin)
	for i, d := range apart {
		c.values[i] += min(max(d, -most), most) - d
	}
}

// median of a few values, or many.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// deviation is the standard deviation, from the median absolute one.
func deviation(values []float64) float64 {
	middle := median(values)
	apart := make([]float64, len(values))
	for i, v := range values {
		apart[i] = math.Abs(v - middle)
	}
	return normalMAD * median(apart)
}

// longRun estimates the variance of a mean of many successive values, times their number, from differences of neighbors: changes of
// level are in few of these. Of an autoregressive process, differences at lag 1 and lag 2 give its correlation (Chakar et al., A robust
// approach for estimating change-points in the mean of an AR(1) process, Bernoulli 23, 2017).
func longRun(values []float64) float64 {
	lag := func(k int) float64 {
		list := make([]float64, len(values)-k)
		for i := range list {
			list[i] = values[i+k] - values[i]
		}
		middle, most := median(list), differenceMax*deviation(list)
		squares, used := 0.0, 0.0
		for _, d := range list {
			if d -= middle; math.Abs(d) <= most {
				squares, used = squares+d*d, used+1
			}
		}
		return squares / used / withinDifference
	}
	one, two := lag(1), lag(2)
	if one == 0 {
		return deviationMin * deviationMin
	}
	correlation := min(max(two/one-1, 0), correlationMax)
	variance := max(one/2/(1-correlation), deviationMin*deviationMin)
	return variance * (1 + correlation) / (1 - correlation)
}

// levels fits a constant level between changes: those changes whose sum of squares, with a penalty for each change, is smallest (Killick,
// Fearnhead and Eckley, Optimal detection of changepoints with a linear computational cost, JASA 107, 2012). The penalty counts in
// variances of means of correlated noise.
func levels(values []float64) []float64 {
	n := len(values)
	sums, squares := make([]float64, n+1), make([]float64, n+1)
	for i, v := range values {
		sums[i+1], squares[i+1] = sums[i]+v, squares[i]+v*v
	}
	cost := func(from, to int) float64 {
		sum := sums[to] - sums[from]
		return squares[to] - squares[from] - sum*sum/float64(to-from)
	}
	penalty := changePenalty * math.Log(float64(n)) * longRun(values)
	best, begins := make([]float64, n+1), make([]int, n+1)
	best[0] = -penalty
	open := []int{0} // where the last level may begin
	for to := levelValuesMin; to <= n; to++ {
		best[to] = math.Inf(1)
		for _, from := range open {
			if total := best[from] + cost(from, to) + penalty; total < best[to] {
				best[to], begins[to] = total, from
			}
		}
		open = slices.DeleteFunc(open, func(from int) bool { return best[from]+cost(from, to) > best[to] })
		if next := to + 1 - levelValuesMin; next >= levelValuesMin {
			open = append(open, next)
		}
	}
	fit := make([]float64, n)
	for to := n; to > 0; to = begins[to] {
		from := begins[to]
		level := (sums[to] - sums[from]) / float64(to-from)
		for i := from; i < to; i++ {
			fit[i] = level
		}
	}
	return fit
}

// spanned are the lowest and the highest level, without those of the shortest time.
func (c *curve) spanned() (low, high float64) {
	sorted := slices.Sorted(slices.Values(c.fit))
	skip := int(levelShare * float64(len(sorted)))
	return sorted[skip], sorted[len(sorted)-1-skip]
}

// settles returns where the levels that differ from that of the second half by more than a share of it end, and where each level
// begins, as indices of the series. One of them must differ by more than the noise of the second half explains.
func (c *curve) settles(apart float64) (end int, changes []int) {
	half := len(c.fit) / 2
	last := median(c.fit[half:])
	deviation, _ := stat.BootstrapError(c.values[half:])
	away, sure := true, false
	for from := 0; from < len(c.fit); {
		level, to := c.fit[from], from+1
		for to < len(c.fit) && c.fit[to] == level {
			to++
		}
		away = away && c.share(min(level, last), max(level, last)) > apart*c.scale(last)
		if away {
			end = to
			share := float64(len(c.fit)-half) / float64(max(1, min(to, half)-from))
			sure = sure || math.Abs(level-last) > levelSure*deviation*math.Sqrt(share)
		} else if from > 0 {
			changes = append(changes, c.at[from])
		}
		from = to
	}
	if end == 0 || end == len(c.fit) || !sure {
		return 0, changes
	}
	return c.at[end], changes
}

// scale is a level as a share of the mean.
func (c *curve) scale(level float64) float64 {
	if c.Latency {
		return math.Exp(level)
	}
	return level
}
