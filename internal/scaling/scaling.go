// Package scaling answers where a system stops scaling: it fits Gunther's universal scalability law to throughput against
// workers, with intervals, and refuses where the data does not support an answer. It is pure: no clock, no random numbers, and
// files only as io.Reader.
//
//	points ──Analyze──▶ Analysis: coefficients, peak, shares of linear ──Sentence──▶ one sentence
//	                    └─ fit.go: bounded least squares   profile.go: intervals of coefficients and predictions
//	CSV ──ReadTable──▶ points
//
// The law (N. J. Gunther, Guerrilla Capacity Planning, 2007):
//
//	X(N) = λN / (1 + σ(N−1) + κN(N−1))
//
// λ is the throughput of one worker, σ the contention (the share of work that only one worker can do at a time), κ the coherency
// (the cost of workers that wait for each other's data). With κ > 0 throughput peaks at N* = sqrt((1−σ)/κ).
package scaling

import (
	"math"
	"slices"
)

// Bounds on input, so that no finite input overflows.
const (
	WorkersMax = 1e9 // and 1/WorkersMax the least
	rateMax    = 1e300
)

// Limits of what a fit is used for.
const (
	PointsMin        = 6    // different numbers of workers for three coefficients
	R2Min            = 0.95 // below, the model does not describe the data
	ReachMax         = 2.0  // predictions end at this multiple of the largest measured number of workers
	confidence       = 0.95 // of every interval
	linearShareMin   = 0.95 // of linear scaling, fitted at the largest measured number of workers, is called linear
	residualShareMax = 0.2  // of the measured throughput, beyond which a fit is wrong at that number of workers
)

// Point is one observation: the throughput of a number of workers. Several points may have the same number of workers.
type Point struct {
	Workers    float64 `json:"workers"`
	Throughput float64 `json:"throughput"`
}

// Coefficients of the law.
type Coefficients struct {
	Lambda float64 `json:"lambda"`
	Sigma  float64 `json:"sigma"`
	Kappa  float64 `json:"kappa"`
}

// Throughput is X(n).
func (c Coefficients) Throughput(n float64) float64 {
	return c.Lambda * n / (1 + c.Sigma*(n-1) + c.Kappa*n*(n-1))
}

// Model says which coefficients of the bounded fit are above zero.
type Model string

const (
	ModelUSL    Model = "usl"    // κ > 0: throughput has a peak
	ModelAmdahl Model = "amdahl" // κ = 0, σ > 0: throughput approaches λ/σ
	ModelLinear Model = "linear" // both zero
)

// Code names a restriction on an answer, or the reason that there is none.
type Code string

const (
	CodeFewPoints    Code = "few-points"    // fewer than PointsMin different numbers of workers
	CodeBadPoint     Code = "bad-point"     // a number of workers or a throughput outside of the bounds
	CodeNoThroughput Code = "no-throughput" // every throughput is zero
	CodeNoSingle     Code = "no-single"     // the data does not determine the throughput of one worker
	CodePoorFit      Code = "poor-fit"      // R² under R2Min
	CodeMisfit       Code = "misfit"        // the fit misses what was measured by more than residualShareMax
	CodeNegative     Code = "negative"      // the unbounded fit has a negative coefficient
	CodeFarPeak      Code = "far-peak"      // the peak is beyond ReachMax times the data
	CodeBeyondData   Code = "beyond-data"   // the peak is beyond the data, and within ReachMax
	CodePeakOpen     Code = "peak-open"     // the data does not exclude that there is no peak
)

// Note is a restriction on an answer as a sentence.
type Note struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Row is what was measured with one number of workers, against the fit and against linear scaling.
type Row struct {
	Workers    float64 `json:"workers"`
	Throughput float64 `json:"throughput"` // mean of the points
	Points     int     `json:"points"`
	Fitted     float64 `json:"fitted,omitempty"`
	Residual   float64 `json:"residual,omitempty"` // measured minus fitted
	// Share of the theoretical maximum: workers × the throughput of one worker. 1 − Share is the platform's overhead.
	Share float64 `json:"share,omitempty"`
}

// Fit is the bounded fit.
type Fit struct {
	Model         Model         `json:"model"`
	Lambda        Estimate      `json:"lambda"`
	Sigma         Estimate      `json:"sigma"`
	Kappa         Estimate      `json:"kappa"`
	R2            float64       `json:"r2"`
	ResidualError float64       `json:"residual_error"` // standard error of residuals, in units of throughput
	Points        int           `json:"points"`
	FreeDegrees   int           `json:"free_degrees"`
	Unbounded     *Coefficients `json:"unbounded,omitempty"` // fit without bounds, where one of its coefficients is negative
	// Peak is N*, with κ > 0 and σ < 1. PeakThroughput is X(N*), without a value for a peak beyond ReachMax times the data.
	Peak           *Estimate    `json:"peak,omitempty"`
	PeakThroughput *Estimate    `json:"peak_throughput,omitempty"`
	Limit          *Estimate    `json:"limit,omitempty"` // λ/σ, which throughput approaches, with κ = 0
	Curve          []CurvePoint `json:"curve"`
}

// linear reports whether the fit is called linear up to n workers.
func (f *Fit) linear(n float64) bool {
	return Coefficients{f.Lambda.Value, f.Sigma.Value, f.Kappa.Value}.Throughput(n) >= linearShareMin*n*f.Lambda.Value
}

// CurvePoint is the fit and its interval at one number of workers. The interval is that of the mean, not of single measurements.
type CurvePoint struct {
	Workers    float64  `json:"workers"`
	Throughput Estimate `json:"throughput"`
}

// Analysis is the answer for one set of points.
type Analysis struct {
	Rows []Row `json:"rows"`
	// Single is the throughput of one worker: measured, or λ of the fit where no point has one worker.
	Single         float64 `json:"single,omitempty"`
	SingleMeasured bool    `json:"single_measured,omitempty"`
	// Fit is nil if Refused has the reason that there is none.
	Fit     *Fit   `json:"fit,omitempty"`
	Refused []Note `json:"refused,omitempty"` // reasons that there is no fit, or that the fit is not an answer
	Notes   []Note `json:"notes,omitempty"`   // restrictions on the answer

	profiles *profiles // of the fit, for predictions
}

// Answered reports whether the fit may be used as an answer.
func (a *Analysis) Answered() bool { return a.Fit != nil && len(a.Refused) == 0 }

// WorkersMeasured is the range of measured workers.
func (a *Analysis) WorkersMeasured() (least, most float64) {
	if len(a.Rows) == 0 {
		return 0, 0
	}
	return a.Rows[0].Workers, a.Rows[len(a.Rows)-1].Workers
}

// Analyze fits the law to points, which it does not change.
func Analyze(points []Point) *Analysis {
	a := &Analysis{}
	if note, bad := badPoint(points); bad {
		a.refuse(note.Code, note.Text)
		return a
	}
	a.Rows = rows(points)
	if len(a.Rows) > 0 && a.Rows[0].Workers == 1 {
		a.Single, a.SingleMeasured = a.Rows[0].Throughput, true
	}
	a.shares()
	if len(a.Rows) < PointsMin {
		a.refuse(CodeFewPoints, fewPoints(len(a.Rows)))
		return a
	}
	d := newData(points)
	if d == nil {
		a.refuse(CodeNoThroughput, "Every throughput is zero.")
		return a
	}
	best, ok := d.bounded()
	if !ok || !(d.scale/best.u[0] <= rateMax) {
		a.refuse(CodeNoSingle, noSingle)
		return a
	}
	a.profiles = d.profiles(d.withoutRounding(best))
	a.describe()
	a.doubt()
	return a
}

func (a *Analysis) refuse(code Code, text string) { a.Refused = append(a.Refused, Note{code, text}) }
func (a *Analysis) note(code Code, text string)   { a.Notes = append(a.Notes, Note{code, text}) }

// rows are the means of points with the same number of workers, in order.
func rows(points []Point) []Row {
	var out []Row
	sorted := slices.SortedStableFunc(slices.Values(points), func(p, q Point) int {
		switch {
		case p.Workers < q.Workers:
			return -1
		case p.Workers > q.Workers:
			return 1
		}
		return 0
	})
	for _, p := range sorted {
		if len(out) == 0 || out[len(out)-1].Workers != p.Workers {
			out = append(out, Row{Workers: p.Workers})
		}
		last := &out[len(out)-1]
		last.Points++
		last.Throughput += (p.Throughput - last.Throughput) / float64(last.Points)
	}
	return out
}

func (a *Analysis) shares() {
	for i := range a.Rows {
		r := &a.Rows[i]
		if share := r.Throughput / a.Single / r.Workers; share >= 0 && share <= rateMax {
			r.Share = share
		}
	}
}

// curvePoints is the number of points of Fit.Curve.
const curvePoints = 49

// describe fills in the fit.
func (a *Analysis) describe() {
	p := a.profiles
	d, c := p.data, p.data.coefficients(p.best)
	f := &Fit{
		Model: ModelUSL, Lambda: p.lambda(c.Lambda), Sigma: p.sigma(c.Sigma), Kappa: p.kappa(c.Kappa),
		R2: d.r2(p.best), ResidualError: d.scale * math.Sqrt(p.best.sum/float64(d.free)), Points: len(d.rows), FreeDegrees: d.free,
	}
	a.Fit = f
	switch {
	case c.Kappa == 0 && c.Sigma == 0:
		f.Model = ModelLinear
	case c.Kappa == 0:
		f.Model = ModelAmdahl
		limit := p.ceiling(c.Lambda / c.Sigma)
		f.Limit = &limit
	}
	if u, ok := d.solve(allColumns); ok && u.u[0] > 0 && (u.u[1] < 0 || u.u[2] < 0) {
		free := d.coefficients(u)
		f.Unbounded = &free
	}
	a.peak(c)
	a.curve()
	if !a.SingleMeasured {
		a.Single = c.Lambda
		a.shares()
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		r.Fitted = c.Throughput(r.Workers)
		r.Residual = r.Throughput - r.Fitted
	}
}

// peak fills in N* and X*.
func (a *Analysis) peak(c Coefficients) {
	if c.Kappa == 0 || c.Sigma >= 1 {
		return
	}
	n := math.Sqrt((1 - c.Sigma) / c.Kappa)
	if n <= 1 {
		return
	}
	peak := a.profiles.peak(n)
	a.Fit.Peak = &peak
	if _, most := a.WorkersMeasured(); n <= ReachMax*most {
		x := a.profiles.peakThroughput(peak)
		a.Fit.PeakThroughput = &x
	}
}

// curve fills in the fitted curve, from the data to a peak that is not too far beyond it.
func (a *Analysis) curve() {
	least, most := a.WorkersMeasured()
	end := most
	if a.Fit.PeakThroughput != nil {
		end = max(end, a.Fit.Peak.Value)
	}
	for i := range curvePoints {
		n := least + (end-least)*float64(i)/(curvePoints-1)
		a.Fit.Curve = append(a.Fit.Curve, CurvePoint{n, a.profiles.throughput(n)})
	}
}

// doubt adds what restricts the answer.
func (a *Analysis) doubt() {
	f := a.Fit
	_, most := a.WorkersMeasured()
	if f.R2 < R2Min {
		a.refuse(CodePoorFit, poorFit(f.R2))
	}
	worst := a.Rows[0]
	for _, r := range a.Rows[1:] {
		if math.Abs(r.Residual)*worst.Throughput > math.Abs(worst.Residual)*r.Throughput {
			worst = r
		}
	}
	if math.Abs(worst.Residual) > residualShareMax*worst.Throughput && worst.Throughput > 0 {
		a.note(CodeMisfit, misfit(worst))
	}
	if f.Unbounded != nil {
		a.note(CodeNegative, negative(*f.Unbounded, f.Model))
	}
	if f.Peak == nil {
		return
	}
	switch n := f.Peak.Value; {
	case n > ReachMax*most:
		a.note(CodeFarPeak, farPeak(n, most))
	case n > most:
		a.note(CodeBeyondData, beyondData(n, most))
	}
	if math.IsInf(f.Peak.High, 1) {
		a.note(CodePeakOpen, peakOpen)
	}
}

// Predict returns the throughput of n workers with its interval. It refuses n beyond ReachMax times the largest measured
// number; extrapolated reports that n is outside of the measured range.
func (a *Analysis) Predict(n float64) (x Estimate, extrapolated bool, refused *Note) {
	if len(a.Refused) > 0 {
		return x, false, &a.Refused[0]
	}
	least, most := a.WorkersMeasured()
	if !(n > 0) || n > ReachMax*most {
		return x, true, &Note{CodeFarPeak, farPrediction(n, most)}
	}
	return a.profiles.throughput(n), n > most || n < least, nil
}
