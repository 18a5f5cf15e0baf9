package scaling

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mathext"
)

// The law is fitted as N/X = a + b(N−1) + cN(N−1), with a = 1/λ, b = σ/λ, c = κ/λ: what is nonlinear in (λ, σ, κ) is the
// reciprocal of something linear in (a, b, c), and each bound and each fixed quantity (σ = s, X(m) = x, N* = n) is linear too. The
// sum of squares is that of X and not of N/X, as in R's nls and the package usl: the quadratic transform of the books weights the
// points of low throughput most and divides by the first one.

// columnsMax is the number of coefficients of the law.
const columnsMax = 3

// row is one observation: X ≈ N / (offset + Σ u·column), with throughput divided by the largest. A row of weight 0 only keeps its
// denominator positive.
type row struct {
	workers, throughput float64
	offset              float64
	column              [columnsMax]float64
	weight              float64
}

// problem is a bounded least-squares fit: u >= 0 for the used columns.
type problem struct {
	rows    []row
	columns int
}

// solution has the coefficients and the sum of squared residuals; columns that are not used are 0.
type solution struct {
	u   [columnsMax]float64
	sum float64
}

// subset is a set of columns.
type subset uint

const allColumns subset = 1<<columnsMax - 1

// data are the observations of one analysis, with throughput divided by scale.
type data struct {
	problem
	scale float64
	free  int // degrees of freedom of the residuals
}

func newData(points []Point) *data {
	d := &data{problem: problem{columns: columnsMax}, free: len(points) - columnsMax}
	for _, p := range points {
		d.scale = max(d.scale, p.Throughput)
	}
	if d.scale == 0 {
		return nil
	}
	for _, p := range points {
		d.rows = append(d.rows, lawRow(p.Workers, p.Throughput/d.scale, 1))
	}
	return d
}

// lawRow is a row of the law itself.
func lawRow(n, x, weight float64) row {
	return row{workers: n, throughput: x, column: [columnsMax]float64{1, n - 1, n * (n - 1)}, weight: weight}
}

// negligible is a share of the denominator N/X that is only rounding.
const negligible = 1e-9

// withoutRounding sets contention and coherency to zero where they contribute nothing to any point.
func (d *data) withoutRounding(s solution) solution {
	for j := 1; j < columnsMax; j++ {
		seen := false
		for _, r := range d.rows {
			seen = seen || s.u[j]*r.column[j] > negligible*r.denominator(&s)
		}
		if !seen {
			s.u[j] = 0
			s.sum = d.squares(s)
		}
	}
	return s
}

// coefficients are those of a solution of the law itself.
func (d *data) coefficients(s solution) Coefficients {
	return Coefficients{Lambda: d.scale / s.u[0], Sigma: s.u[1] / s.u[0], Kappa: s.u[2] / s.u[0]}
}

// r2 is the share of the variance of throughput that a solution explains.
func (d *data) r2(s solution) float64 {
	mean, total := 0.0, 0.0
	for _, r := range d.rows {
		mean += r.throughput / float64(len(d.rows))
	}
	for _, r := range d.rows {
		total += (r.throughput - mean) * (r.throughput - mean)
	}
	// A constant throughput has no variance: explained exactly, or not at all.
	if total <= exact*float64(len(d.rows)) {
		if s.sum <= exact*float64(len(d.rows)) {
			return 1
		}
		return 0
	}
	return 1 - s.sum/total
}

// exact is a squared residual, relative to the largest throughput, that is only rounding.
const exact = 1e-24

// bounded is the solution with the least sum of squares among those with u >= 0: the unbounded one if it is feasible, and
// otherwise the best of the faces of the bounds, which are few. False means that no face has a feasible minimum.
func (p *problem) bounded() (best solution, ok bool) {
	all := subset(1)<<p.columns - 1
	for i := range subset(1) << p.columns {
		s, converged := p.solve(all - i)
		if !converged || min(s.u[0], s.u[1], s.u[2]) < 0 {
			continue
		}
		if i == 0 {
			return s, true
		}
		if !ok || s.sum < best.sum {
			best, ok = s, true
		}
	}
	return best, ok
}

// Limits of the iteration.
const (
	iterationsMax = 200
	dampingMax    = 1e12
	stepMin       = 1e-11 // change of fitted throughput, relative to the largest throughput
	rounding      = 1e-14 // of a sum of squares
)

// solve fits the used columns without bounds by Levenberg and Marquardt's method. False means that no start is feasible.
func (p *problem) solve(used subset) (solution, bool) {
	s, ok := p.start(used)
	if !ok {
		return s, false
	}
	damping := 1e-3
	for range iterationsMax {
		normal, gradient := p.gradient(used, s)
		step, solved := solveNormal(used, normal, gradient, damping)
		if !solved {
			return s, true
		}
		next, relative := s, 0.0
		for j := range p.columns {
			next.u[j] += step[j]
			relative = max(relative, math.Abs(step[j])*math.Sqrt(normal[j][j]))
		}
		next.sum = p.squares(next)
		switch {
		case next.sum <= s.sum*(1+rounding):
			s, damping = next, max(damping/10, 1e-15)
		case damping > dampingMax:
			return s, true
		default:
			damping *= 10
		}
		if relative < stepMin {
			return s, true
		}
	}
	return s, true
}

// start is the linear fit of N/X, where each row has the weight that its throughput's error has in N/X, or the first feasible of
// a few rough ones.
func (p *problem) start(used subset) (solution, bool) {
	var normal [columnsMax][columnsMax]float64
	var gradient [columnsMax]float64
	for _, r := range p.rows {
		if r.throughput == 0 || r.weight == 0 {
			continue
		}
		w := r.throughput * r.throughput / r.workers
		rest := r.workers/r.throughput - r.offset
		for j := range columnsMax {
			gradient[j] += w * w * r.column[j] * rest
			for k := range columnsMax {
				normal[j][k] += w * w * r.column[j] * r.column[k]
			}
		}
	}
	var s solution
	if u, ok := solveNormal(used, normal, gradient, 0); ok {
		s.u = u
		if s.sum = p.squares(s); !math.IsInf(s.sum, 1) {
			return s, true
		}
	}
	best := solution{sum: math.Inf(1)}
	for exponent := -12.0; exponent <= 1; exponent++ {
		rough := solution{}
		for j := range p.columns {
			if used&(1<<j) != 0 && normal[j][j] > 0 {
				rough.u[j] = math.Pow(10, exponent) * math.Abs(gradient[j]) / normal[j][j]
			}
		}
		if rough.sum = p.squares(rough); rough.sum < best.sum {
			best = rough
		}
	}
	return best, !math.IsInf(best.sum, 1)
}

// squares is the sum of squared residuals, +Inf where a denominator is not positive.
func (p *problem) squares(s solution) float64 {
	sum := 0.0
	for i := range p.rows {
		r := &p.rows[i]
		denominator := r.denominator(&s)
		if !(denominator > 0) {
			return math.Inf(1)
		}
		if r.weight == 0 {
			continue
		}
		e := r.throughput - r.workers/denominator
		sum += e * e
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

func (r *row) denominator(s *solution) float64 {
	return r.offset + s.u[0]*r.column[0] + s.u[1]*r.column[1] + s.u[2]*r.column[2]
}

// gradient returns the normal matrix and the right side of a Gauss-Newton step.
func (p *problem) gradient(used subset, s solution) (normal [columnsMax][columnsMax]float64, right [columnsMax]float64) {
	for i := range p.rows {
		r := &p.rows[i]
		if r.weight == 0 {
			continue
		}
		x := r.workers / r.denominator(&s)
		slope := -x * x / r.workers
		for j := range p.columns {
			if used&(1<<j) == 0 {
				continue
			}
			dj := slope * r.column[j]
			right[j] += dj * (r.throughput - x)
			for k := range p.columns {
				normal[j][k] += dj * slope * r.column[k]
			}
		}
	}
	return normal, right
}

// solveNormal solves normal·step = right for the used columns, with the diagonal enlarged by damping. Columns are divided by
// their length first; false means that the matrix is singular.
func solveNormal(used subset, normal [columnsMax][columnsMax]float64, right [columnsMax]float64, damping float64) (step [columnsMax]float64, ok bool) {
	var at [columnsMax]int
	size := 0
	for j := range columnsMax {
		if used&(1<<j) != 0 {
			at[size] = j
			size++
		}
	}
	if size != bits.OnesCount(uint(used)) {
		return step, false
	}
	var m [columnsMax][columnsMax + 1]float64
	for i := range size {
		li := math.Sqrt(normal[at[i]][at[i]])
		if !(li > 0) || math.IsInf(li, 1) {
			return step, false
		}
		for k := range size {
			m[i][k] = normal[at[i]][at[k]] / li / math.Sqrt(normal[at[k]][at[k]])
		}
		m[i][i] += damping
		m[i][columnsMax] = right[at[i]] / li
	}
	for i := range size {
		// The matrix is positive definite, so no pivot is needed: an entry of the diagonal near 0 means singular.
		if !(m[i][i] > 1e-14) {
			return step, false
		}
		for k := i + 1; k < size; k++ {
			f := m[k][i] / m[i][i]
			for l := i; l <= columnsMax; l++ {
				m[k][l] -= f * m[i][l]
			}
		}
	}
	for i := size - 1; i >= 0; i-- {
		v := m[i][columnsMax]
		for k := i + 1; k < size; k++ {
			v -= m[i][k] * step[at[k]] * math.Sqrt(normal[at[k]][at[k]])
		}
		step[at[i]] = v / m[i][i] / math.Sqrt(normal[at[i]][at[i]])
	}
	return step, true
}

// tSquared is the square of the two-sided quantile of Student's t at the confidence of intervals.
func tSquared(free int) float64 {
	x := mathext.InvRegIncBeta(float64(free)/2, 0.5, 1-confidence)
	return float64(free) * (1 - x) / x
}
