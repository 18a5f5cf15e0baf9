package stat

import "math"

// Between returns values between which quantile q of the distribution lies that h and unfinished larger values were drawn from,
// with Confidence: two order statistics, whose ranks are binomial, without any assumption on the distribution. High is +Inf if the
// sample is too small to bound the quantile from above, or the bound is among the unfinished; low is 0 if it is too small for a
// bound from below.
//
// It covers chance in which operations were drawn, and nothing else: not what changes between runs. effect ≥ 1 is the design
// effect (DesignEffect): operations that correlate count as that many times fewer (Woodruff 1952). Rank bounds of independent
// operations have effect 1.
func (h *Histogram) Between(q float64, unfinished uint64, effect float64) (low, high float64) {
	if h.count == 0 {
		return math.NaN(), math.NaN()
	}
	all := float64(h.count + unfinished)
	effective := uint64(max(1, math.Floor(all/max(1, effect))))
	from, to := QuantileRanks(effective, q)
	scale := all / float64(effective)
	if from > 0 {
		bucket, _ := BucketBounds(BucketOf(uint64(h.AtRank(uint64(float64(from) * scale)))))
		low = max(float64(bucket), float64(h.min))
	}
	rank := uint64(math.Ceil(float64(to) * scale))
	if to > effective || rank > h.count {
		return low, math.Inf(1)
	}
	_, bucket := BucketBounds(BucketOf(uint64(h.AtRank(rank))))
	return low, min(float64(bucket), float64(h.max))
}

// ranksExact is the expected number of values on the rarer side of a quantile below which ranks come from the binomial
// distribution itself; above, the normal approximation is off by less than a rank.
const ranksExact = 1000

// normalQuantile is the standard normal quantile of 1 − Level/2.
const normalQuantile = 1.959963984540054

// QuantileRanks returns ranks from and to, counting from 1: of n sorted independent values, quantile q of their distribution lies
// between the values at these ranks with at least Confidence. From is 0, or to is n+1, if no value bounds it.
func QuantileRanks(n uint64, q float64) (from, to uint64) {
	expected := float64(n) * q
	spread := math.Sqrt(expected * (1 - q))
	if min(expected, float64(n)*(1-q)) > ranksExact {
		return uint64(math.Floor(expected - normalQuantile*spread)), uint64(math.Ceil(expected+normalQuantile*spread)) + 1
	}
	// The number of values at or below the quantile is binomial. The quantile is at or above the value at rank r unless fewer than
	// r values are at or below it.
	atMost := func(k uint64) float64 { // P(X ≤ k)
		if k >= n {
			return 1
		}
		return Beta(float64(n-k), float64(k)+1, 1-q)
	}
	first := func(p float64, strict bool) uint64 { // smallest k with P(X ≤ k) ≥ p, or > p
		low, high := uint64(0), n
		for low < high {
			middle := low + (high-low)/2
			if at := atMost(middle); at > p || !strict && at == p {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return low
	}
	// Largest from with P(X ≤ from−1) ≤ Level/2, smallest to with P(X ≤ to−1) ≥ 1 − Level/2.
	return first(Level/2, true), first(1-Level/2, false) + 1
}

// DesignEffect returns by how much the share of operations beyond a value varies more than that of independent ones: the ratio of
// variances, at least 1. Slices of the run, in order, have counts operations each, hits of them beyond the value; that slices
// correlate with their neighbors is accounted for by a block bootstrap. The estimate is itself uncertain, and widened as Student's t is. NaN if it cannot be estimated: too few slices, or no hits.
func DesignEffect(counts, hits []float64) float64 {
	all, beyond := 0.0, 0.0
	for i := range counts {
		all, beyond = all+counts[i], beyond+hits[i]
	}
	share := beyond / all
	if !(share > 0 && share < 1) {
		return math.NaN()
	}
	residuals := make([]float64, len(counts))
	for i := range counts {
		residuals[i] = hits[i] - share*counts[i]
	}
	standardError, df := BootstrapError(residuals)
	if math.IsNaN(standardError) {
		return math.NaN()
	}
	total := standardError * float64(len(counts))
	widened := StudentQuantile(1-Level/2, df) / normalQuantile
	return max(1, total*total/(all*share*(1-share))*widened*widened)
}

// CountAbove returns how many values are in buckets above that of v.
func (h *Histogram) CountAbove(v uint64) uint64 {
	_, top := h.used()
	n := uint64(0)
	for i := BucketOf(v) + 1; i < top; i++ {
		n += h.counts[i]
	}
	return n
}
