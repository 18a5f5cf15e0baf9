package scaling

import "math"

// profiles has the intervals of one fit. An interval of a quantity q is a profile-likelihood interval: all values v for which the
// best fit with q = v and u >= 0 has a sum of squares of at most S·(1 + t²/(n−3)), where S is the least sum and t Student's quantile
// (Bates and Watts, Nonlinear Regression Analysis, 1988, chapter 6). It was preferred to the estimate ± t·SE, which reaches below the
// bounds and is symmetric where the peak's uncertainty is not, and to a bootstrap of residuals, which is too narrow with the six to
// twelve points that people have.
type profiles struct {
	data  *data
	best  solution
	limit float64 // largest sum of squares inside of the interval
}

func (d *data) profiles(best solution) *profiles {
	floor := exact * float64(len(d.rows)) // exact data has residuals of rounding only
	return &profiles{d, best, max(best.sum, floor) * (1 + tSquared(d.free)/float64(d.free))}
}

// constrained returns the least sum of squares of the problem whose rows are made from those of the law; the row of one worker
// keeps λ positive.
func (p *profiles) constrained(columns int, change func(n float64) (offset float64, column [columnsMax]float64)) float64 {
	q := problem{rows: make([]row, 0, len(p.data.rows)+1), columns: columns}
	for _, r := range append(p.data.rows[:len(p.data.rows):len(p.data.rows)], row{workers: 1}) {
		r.offset, r.column = change(r.workers)
		q.rows = append(q.rows, r)
	}
	s, ok := q.bounded()
	if !ok {
		return math.Inf(1)
	}
	return s.sum
}

// lambda, sigma and kappa are the coefficients with their intervals.
func (p *profiles) lambda(value float64) Estimate {
	return p.estimate(value, 0, func(v float64) float64 {
		a := p.data.scale / v
		return p.constrained(2, func(n float64) (float64, [columnsMax]float64) {
			return a, [columnsMax]float64{n - 1, n * (n - 1)}
		})
	})
}

func (p *profiles) sigma(value float64) Estimate {
	return p.estimate(value, 0, func(v float64) float64 {
		return p.constrained(2, func(n float64) (float64, [columnsMax]float64) {
			return 0, [columnsMax]float64{1 + v*(n-1), n * (n - 1)}
		})
	})
}

func (p *profiles) kappa(value float64) Estimate {
	return p.estimate(value, 0, func(v float64) float64 {
		return p.constrained(2, func(n float64) (float64, [columnsMax]float64) {
			return 0, [columnsMax]float64{1 + v*n*(n-1), n - 1}
		})
	})
}

// peak is N* with its interval: a = b + n²c, divided by n² so that n may be large.
func (p *profiles) peak(value float64) Estimate {
	return p.estimate(value, 1, func(v float64) float64 {
		return p.constrained(2, func(n float64) (float64, [columnsMax]float64) {
			return 0, [columnsMax]float64{n, 1 + n*(n-1)/v/v}
		})
	})
}

// throughput is X(m) with its interval: a = m/x − b(m−1) − cm(m−1).
func (p *profiles) throughput(m float64) Estimate {
	value := p.data.coefficients(p.best).Throughput(m)
	return p.estimate(value, 0, func(v float64) float64 {
		whole := m / v * p.data.scale
		return p.constrained(2, func(n float64) (float64, [columnsMax]float64) {
			return whole, [columnsMax]float64{n - m, n*(n-1) - m*(m-1)}
		})
	})
}

// peakThroughput is X(N*) with its interval. Every N* of the confidence region is in the peak's interval, so the largest upper
// bound of X in it is that of X(N*); the largest lower bound is at most that of X(N*).
func (p *profiles) peakThroughput(peak Estimate) Estimate {
	out := p.throughput(peak.Value)
	if math.IsInf(peak.High, 1) {
		out.High = math.Inf(1)
		return out
	}
	for i := range peakSteps {
		n := peak.Low * math.Pow(peak.High/peak.Low, float64(i)/(peakSteps-1))
		x := p.throughput(n)
		out.Low, out.High = max(out.Low, x.Low), max(out.High, x.High)
	}
	return out
}

// peakSteps is the number of places in the peak's interval where X is bounded; X is flat there.
const peakSteps = 9

// ceiling is λ/σ with its interval, of fits with κ = 0: the reciprocal of b.
func (p *profiles) ceiling(value float64) Estimate {
	return p.estimate(value, 0, func(v float64) float64 {
		b := p.data.scale / v
		return p.constrained(1, func(n float64) (float64, [columnsMax]float64) {
			return b * (n - 1), [columnsMax]float64{1}
		})
	})
}

// Limits of the search for the end of an interval.
const (
	endsMax      = 60   // doublings of the distance from the estimate
	bisectsMax   = 100  // steps between a value inside of the interval and one outside of it
	endPrecision = 1e-7 // relative to the distance from the estimate
)

// estimate finds the interval of a quantity that is at least the floor. sum returns the least sum of squares where the quantity
// has a value.
func (p *profiles) estimate(value, floor float64, sum func(v float64) float64) Estimate {
	e := Estimate{value, floor, math.Inf(1)}
	// In square roots the profile is nearly linear on each side, so that false position is fast.
	outside := func(v float64) float64 {
		return math.Sqrt(max(0, sum(v)-p.best.sum)) - math.Sqrt(p.limit-p.best.sum)
	}
	if at := max(floor, value*1e-9); value > floor && outside(at) > 0 {
		e.Low = end(outside, value, at)
	}
	distance := max(value-e.Low, value*1e-9)
	if distance == 0 {
		distance = 1e-12
	}
	inside := value
	for range endsMax {
		if at := value + distance; outside(at) > 0 {
			e.High = end(outside, inside, at)
			break
		}
		inside = value + distance
		distance *= 2
	}
	return e
}

// end finds where outside changes its sign, by false position in the Illinois variant, with bisection where a sum is infinite.
func end(outside func(float64) float64, inside, beyond float64) float64 {
	start, low, high := inside, outside(inside), outside(beyond)
	side := 0
	for range bisectsMax {
		if math.Abs(beyond-inside) <= endPrecision*math.Abs(beyond-start) {
			break
		}
		at := (inside + beyond) / 2
		if !math.IsInf(high, 1) && high > low {
			at = inside + (beyond-inside)*low/(low-high)
		}
		v := outside(at)
		if math.Abs(v) <= endPrecision*math.Abs(low) {
			return at
		}
		if v > 0 {
			if beyond, high = at, v; side > 0 {
				low /= 2
			}
			side = 1
			continue
		}
		if inside, low = at, v; side < 0 {
			high /= 2
		}
		side = -1
	}
	return inside + (beyond-inside)/2
}
