package stat

import "math"

// Beta returns the regularized incomplete beta function I_x(a, b) for a, b > 0, by Lentz's continued fraction (Abramowitz and
// Stegun 26.5.8, in the arrangement of Numerical Recipes 6.4). Its relative error is below 1e-10 in the ranges used here.
func Beta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction converges slowly; the mirrored one is fast
		return 1 - Beta(b, a, 1-x)
	}
	logA, _ := math.Lgamma(a)
	logB, _ := math.Lgamma(b)
	logAB, _ := math.Lgamma(a + b)
	front := math.Exp(logAB - logA - logB + a*math.Log(x) + b*math.Log1p(-x))
	return front * betaFraction(a, b, x) / a
}

func betaFraction(a, b, x float64) float64 {
	const tiny, precision, stepsMax = 1e-300, 1e-14, 100_000
	notZero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/notZero(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < stepsMax; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / notZero(1+even*d)
		c = notZero(1 + even/c)
		f *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / notZero(1+odd*d)
		c = notZero(1 + odd/c)
		f *= d * c
		if math.Abs(d*c-1) < precision {
			break
		}
	}
	return f
}

// StudentBeyond returns the probability that Student's t with df > 0 degrees of freedom lies further from zero than t, on
// either side.
func StudentBeyond(t, df float64) float64 { return Beta(df/2, 0.5, df/(df+t*t)) }

// StudentQuantile returns the t below which Student's t with df > 0 degrees of freedom lies with probability p in (0, 1).
func StudentQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -StudentQuantile(1-p, df)
	}
	return search(func(t float64) bool { return StudentBeyond(t, df) <= 2*(1-p) })
}

// search returns the smallest t ≥ 0 for which a condition holds that holds for every larger one; +Inf if there is none.
func search(holds func(t float64) bool) float64 {
	low, high := 0.0, 1.0
	for ; !holds(high); low, high = high, 2*high {
		if high > 1e15 {
			return math.Inf(1)
		}
	}
	for high-low > 1e-12*high {
		middle := (low + high) / 2
		if holds(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// normalBelow is the distribution function of the standard normal distribution.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// shiftToExceed returns by how many standard errors a mean must be shifted so that its t statistic with df degrees of freedom
// exceeds critical with the given probability: the noncentrality of Student's t. The estimated standard error, as a multiple of
// the true one, is distributed as sqrt(χ²/df); the probability is integrated over it by Simpson's rule.
func shiftToExceed(critical, probability, df float64) float64 {
	logGamma, _ := math.Lgamma(df / 2)
	logFront := math.Ln2 + df/2*math.Log(df/2) - logGamma
	const steps = 400
	top := 1 + 12/math.Sqrt(2*df)
	var at, weighted [steps + 1]float64 // the density does not depend on the shift
	for i := range at {
		s, weight := top*float64(i)/steps, 2.0
		switch {
		case i == 0 || i == steps:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		s = max(s, 1e-12) // the density has a power of s below zero for df < 1
		at[i], weighted[i] = s, weight*math.Exp(logFront+(df-1)*math.Log(s)-df*s*s/2)
	}
	power := func(shift float64) float64 {
		sum := 0.0
		for i, s := range at {
			if weighted[i] > 0 {
				sum += weighted[i] * normalBelow(shift-critical*s)
			}
		}
		return sum * top / steps / 3
	}
	return search(func(shift float64) bool { return power(shift) >= probability })
}
