package pattern

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
)

// zipf draws ranks 0 … blocks−1 with probability proportional to 1/(rank+1)^theta, for any theta above 0, without a
// table: rejection-inversion (Hörmann, Derflinger: Rejection-Inversion to Generate Variates from Monotone Discrete
// Distributions, ACM TOMACS 6(3), 1996). More than 3 of 4 first draws are taken.
type zipf struct {
	theta, top       float64
	integralTop      float64
	integralBottom   float64
	acceptBelowShift float64
}

// NewZipf: the most frequent blocks get most accesses, by theta.
func NewZipf(theta float64, blocks, key uint64) Hotspots {
	z := zipf{theta: theta, top: float64(blocks)}
	z.integralBottom = z.integral(1.5) - 1
	z.integralTop = z.integral(z.top + 0.5)
	z.acceptBelowShift = 2 - z.inverse(z.integral(2.5)-math.Pow(2, -theta))
	return Hotspots{Kind: hotZipf, zipf: z, blocks: blocks, scatter: newPermutation(blocks, key)}
}

// integral is ∫ x^−theta dx, up to a constant, in a form that is smooth around theta = 1.
func (z *zipf) integral(x float64) float64 {
	logX := math.Log(x)
	return expm1Over((1-z.theta)*logX) * logX
}

// inverse is the inverse function of integral.
func (z *zipf) inverse(y float64) float64 {
	t := max(-1, y*(1-z.theta))
	return math.Exp(log1pOver(t) * y)
}

func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2
}

func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x/2
}

// draw returns the rank for operation n of key. Rejected draws go on with a key of their own.
func (z *zipf) draw(key, n uint64) uint64 {
	for try := uint64(0); ; try++ {
		u := z.integralTop + load.DrawUnit(key, n)*(z.integralBottom-z.integralTop)
		x := z.inverse(u)
		rank := min(max(math.Floor(x+0.5), 1), z.top)
		if rank-x <= z.acceptBelowShift || u >= z.integral(rank+0.5)-math.Pow(rank, -z.theta) {
			return uint64(rank) - 1
		}
		key = load.Key(key, n+try)
	}
}
