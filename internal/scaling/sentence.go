package scaling

import (
	"fmt"
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Names are the words for what was measured: "workers" and "IOPS", or those of the heading of a table.
type Names struct {
	Workers    string
	Throughput func(v float64) string // prints a throughput with its unit
}

const (
	noSingle = "The throughput of one worker cannot be derived from the data. Measure fewer workers, from 1 on."
	peakOpen = "The data does not exclude that throughput has no peak at all."
)

func fewPoints(n int) string {
	return fmt.Sprintf("Measured: %s. A fit of three coefficients needs at least %d.",
		textio.Plural(n, "different number")+" of workers", PointsMin)
}

func badPoint(points []Point) (Note, bool) {
	for i, p := range points {
		switch {
		case !(p.Workers >= 1/WorkersMax && p.Workers <= WorkersMax):
			return Note{CodeBadPoint, fmt.Sprintf("Point %d has %v workers: must be positive and at most %v.", i+1, p.Workers, WorkersMax)}, true
		case !(p.Throughput >= 0 && p.Throughput <= rateMax):
			return Note{CodeBadPoint, fmt.Sprintf("Point %d has a throughput of %v: must be zero or positive.", i+1, p.Throughput)}, true
		}
	}
	return Note{}, false
}

func poorFit(r2 float64) string {
	return fmt.Sprintf("The law explains only %s of the variation of throughput (R², at least %s needed): the coefficients do not describe this system.",
		unit.FormatPercent(r2), unit.FormatPercent(R2Min))
}

func negative(c Coefficients, m Model) string {
	name, value := "coherency", c.Kappa
	if c.Sigma < 0 {
		name, value = "contention", c.Sigma
	}
	used := map[Model]string{
		ModelUSL: "contention of 0", ModelAmdahl: "coherency of 0 (Amdahl's law)", ModelLinear: "linear scaling",
	}[m]
	return fmt.Sprintf("Without bounds the best fit has a negative %s (%.3g), which has no physical meaning. The fit shown has %s.", name, value, used)
}

func farPeak(n, most float64) string {
	return fmt.Sprintf("The fit puts the peak at %s workers, more than %v times the %s measured: too far to be a result.", FormatWorkers(n), ReachMax, FormatWorkers(most))
}

func misfit(r Row) string {
	side := "above"
	if r.Residual > 0 {
		side = "below"
	}
	return fmt.Sprintf("With %s the fit is %s %s the measured throughput.", workersText(r.Workers),
		unit.FormatPercent(math.Abs(r.Residual)/r.Throughput), side)
}

// workersText prints a number with its noun.
func workersText(n float64) string {
	if n == 1 {
		return "1 worker"
	}
	return FormatWorkers(n) + " workers"
}

func beyondData(n, most float64) string {
	return fmt.Sprintf("The peak at %s workers is extrapolated: at most %s were measured.", FormatWorkers(n), FormatWorkers(most))
}

func farPrediction(n, most float64) string {
	return fmt.Sprintf("No prediction for %s workers: at most %s were measured, and predictions end at %s.", FormatWorkers(n), FormatWorkers(most), FormatWorkers(ReachMax*most))
}

// FormatWorkers prints a number of workers: whole from ten on.
func FormatWorkers(n float64) string {
	switch {
	case n >= 1e6:
		return unit.FormatCount(n)
	case n >= 10:
		return unit.FormatWhole(uint64(math.Round(n)))
	}
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// Span prints an interval in the format of its values: "29 to 52", "29 or more".
func (e Estimate) Span(format func(float64) string) string {
	if math.IsInf(e.High, 1) {
		return format(e.Low) + " or more"
	}
	return format(e.Low) + " to " + format(e.High)
}

// Sentence answers where throughput stops growing, in one sentence, or why that is not known.
func (a *Analysis) Sentence(names Names) string {
	if !a.Answered() {
		return "Where throughput stops growing is unknown: " + a.Refused[0].Text
	}
	f := a.Fit
	_, most := a.WorkersMeasured()
	last := a.Rows[len(a.Rows)-1]
	costs := fmt.Sprintf("contention %s, coherency %s", unit.FormatPercent(f.Sigma.Value), unit.FormatPercent(f.Kappa.Value))
	switch {
	case f.linear(most):
		return fmt.Sprintf("Throughput grows linearly up to %s %s: contention at most %s, coherency at most %s.",
			FormatWorkers(most), names.Workers, atMost(f.Sigma), atMost(f.Kappa))
	case f.Peak != nil && f.PeakThroughput == nil:
		return fmt.Sprintf("Throughput still grows at %s %s, the most measured, where it reaches %s of linear scaling; %s.",
			FormatWorkers(most), names.Workers, unit.FormatPercent(last.Share), costs)
	case f.Peak != nil:
		verb := "peaks"
		if f.Peak.Value > most {
			verb = "would peak"
		}
		return fmt.Sprintf("Throughput %s near %s %s (%s), at %s (%s); %s.", verb, FormatWorkers(f.Peak.Value), names.Workers,
			f.Peak.Span(FormatWorkers), names.Throughput(f.PeakThroughput.Value), f.PeakThroughput.Span(names.Throughput), costs)
	case f.Limit != nil && f.Limit.Value > growthMin*f.Curve[0].Throughput.Value:
		return fmt.Sprintf("Throughput has no peak up to %s %s and approaches %s (%s); %s.",
			FormatWorkers(most), names.Workers, names.Throughput(f.Limit.Value), f.Limit.Span(names.Throughput), costs)
	}
	return fmt.Sprintf("More %s do not increase throughput: it is highest at %s; %s.", names.Workers, FormatWorkers(a.Rows[0].Workers), costs)
}

// growthMin is the limit, relative to the throughput of the fewest workers, from which on more workers are worth it.
const growthMin = 1.05

// atMost prints the upper end of an interval.
func atMost(e Estimate) string {
	if math.IsInf(e.High, 1) {
		return "unknown"
	}
	return unit.FormatPercent(e.High)
}

// Density says how much of linear scaling is left at the largest measured number of workers.
func (a *Analysis) Density(names Names) string {
	if a.Single == 0 || len(a.Rows) < 2 {
		return ""
	}
	last := a.Rows[len(a.Rows)-1]
	origin := "as measured"
	if !a.SingleMeasured {
		origin = "as fitted"
	}
	return fmt.Sprintf("Density: %s %s reach %s, which is %s of %s × %s (one worker, %s); platform overhead %s.",
		FormatWorkers(last.Workers), names.Workers, names.Throughput(last.Throughput), unit.FormatPercent(last.Share),
		FormatWorkers(last.Workers), names.Throughput(a.Single), origin, unit.FormatPercent(max(0, 1-last.Share)))
}
