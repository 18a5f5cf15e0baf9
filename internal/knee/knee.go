// Package knee searches for the highest rate at which a run meets a threshold. Runs are noisy: near that rate the same rate meets
// the threshold in one run and misses it in the next, so the answer has an interval, and a run that contradicts the others widens
// it. The search runs nothing itself: the caller asks for the next rate, runs it and reports the outcome.
//
//	New ──Next──▶ factor of the scenario's rates ──(caller runs it)──▶ Observe ──Add──▶ … ──Answer──▶ Sentence
//
//	knee.go     the search
//	observe.go  what a finished run says about one rate
//	sentence.go the answer in words
package knee

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/result"
)

// Limits and defaults of a search.
const (
	FactorMax   = 64.0 // of the scenario's rates; the least is 1/FactorMax
	RunsDefault = 16
	RunsMax     = 100
	// precision is how far apart, as a ratio, the ends of an interval may be for the search to end.
	precision  = 1.15
	confidence = 0.95
	// repeatsAtEnd is how often the threshold is met at the low end of the interval before the search ends; and how often the lowest
	// rate must miss, or the highest one meet it, for that to be the answer.
	repeatsAtEnd = 2
)

// The model: a run at a factor meets the threshold with the probability
//
//	lapse + (1 − 2·lapse)·logistic((ln knee − ln factor)/slope)
//
// A slope is the noise of the platform, as a ratio of rates; it is unknown, and all of slopes are weighed. A lapse is a run that was
// disturbed. Adaptive search with such a model is that of psychometrics (Kontsevich and Tyler, 1999). Bisection was rejected: one
// disturbed run leads it to a wrong half for good, and its interval does not know that.
const (
	lapse     = 0.02
	gridSteps = 600
)

var slopes = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}

// Observation is the outcome of one run.
type Observation struct {
	Factor float64 `json:"factor"` // of the scenario's rates
	Rate   float64 `json:"rate"`   // operations due per second, over all VMs
	Met    bool    `json:"met"`
	// Value is the worst statistic that the threshold is about, in its unit; AtLeast: a lower bound of it.
	Value   result.Number `json:"value"`
	AtLeast bool          `json:"at_least"`
	// Undecided is why the run does not decide; it counts as missed, so that no rate is recommended without a run that met the
	// threshold.
	Undecided string `json:"undecided,omitempty"`
	// Few: undecided because of too few operations. A lower rate has even fewer.
	Few bool `json:"few,omitempty"`
	// Invalid is why the measurement of a run that missed the threshold is INVALID: the limit may be that of the load generator.
	Invalid string `json:"invalid,omitempty"`
	Run     string `json:"run,omitempty"`
}

// Kind is the kind of an answer.
type Kind string

const (
	Found     Kind = "found"
	AlwaysMet Kind = "always-met" // at the highest rate tried too
	NeverMet  Kind = "never-met"  // at the lowest rate tried neither
	Unknown   Kind = "unknown"    // no run
)

// Answer is the result of a search.
type Answer struct {
	Kind Kind `json:"kind"`
	// Factor is where half of the runs meet the threshold, with its 95 % interval. For always-met and never-met all three are the
	// highest and the lowest factor tried.
	Factor float64 `json:"factor"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Rate, RateLow and RateHigh are the same in operations per second over all VMs.
	Rate     float64 `json:"rate"`
	RateLow  float64 `json:"rate_low"`
	RateHigh float64 `json:"rate_high"`
	Precise  bool    `json:"precise"` // the interval is as narrow as asked for
	// Contradiction reports two runs of which the faster one met the threshold, by far; empty without.
	Contradiction string        `json:"contradiction,omitempty"`
	Undecided     int           `json:"undecided"` // runs that did not decide and count as missed
	Invalid       int           `json:"invalid"`   // runs that missed the threshold and are INVALID
	Runs          []Observation `json:"runs"`
}

// Search is one search. Its zero value is not usable.
type Search struct {
	runsMax int
	runs    []Observation
	// logs are the logarithms of possible knees, weights their probabilities, for each slope.
	logs    []float64
	weights [][]float64
}

// New starts a search of at most runsMax runs.
func New(runsMax int) *Search {
	s := &Search{runsMax: runsMax}
	end := math.Log(FactorMax)
	for i := range gridSteps + 1 {
		s.logs = append(s.logs, -end+2*end*float64(i)/gridSteps)
	}
	for range slopes {
		s.weights = append(s.weights, slices.Repeat([]float64{1}, len(s.logs)))
	}
	return s
}

// Add reports a run at a factor that Next returned.
func (s *Search) Add(o Observation) {
	s.runs = append(s.runs, o)
	for i, slope := range slopes {
		for k, knee := range s.logs {
			p := meets(math.Log(o.Factor), knee, slope)
			if !o.Met {
				p = 1 - p
			}
			s.weights[i][k] *= p
		}
	}
	total := 0.0
	for _, list := range s.weights {
		for _, w := range list {
			total += w
		}
	}
	for _, list := range s.weights {
		for k := range list {
			list[k] /= total
		}
	}
}

// meets is the probability that a run meets the threshold, with logarithms of factors.
func meets(at, knee, slope float64) float64 {
	return lapse + (1-2*lapse)/(1+math.Exp((at-knee)/slope))
}

// entropy is that of the knee's distribution after a run at a factor, as expected before it.
func (s *Search) entropy(at float64) float64 {
	met, missed := make([]float64, len(s.logs)), make([]float64, len(s.logs))
	for i, slope := range slopes {
		for k, knee := range s.logs {
			p := meets(at, knee, slope)
			met[k] += s.weights[i][k] * p
			missed[k] += s.weights[i][k] * (1 - p)
		}
	}
	sum := 0.0
	for _, outcome := range [][]float64{met, missed} {
		total := 0.0
		for _, w := range outcome {
			total += w
		}
		for _, w := range outcome {
			if w > 0 {
				sum -= w * math.Log(w/total)
			}
		}
	}
	return sum
}

// best is the factor whose run is expected to tell most about the knee, among quantiles of its distribution.
func (s *Search) best() float64 {
	best, least := 0.0, math.Inf(1)
	for q := 0.02; q < 0.99; q += 0.04 {
		factor := rounded(s.quantile(q))
		if e := s.entropy(math.Log(factor)); e < least {
			best, least = factor, e
		}
	}
	return best
}

// Next returns the factor of the next run; false if the search is over.
func (s *Search) Next() (factor float64, more bool) {
	if len(s.runs) == 0 {
		return 1, s.runsMax > 0
	}
	if len(s.runs) >= s.runsMax {
		return 0, false
	}
	least, most := s.tried()
	switch met, missed := s.count(true), s.count(false); {
	case missed == 0 && most >= FactorMax && s.at(most) >= repeatsAtEnd, met == 0 && least <= 1/FactorMax && s.at(least) >= repeatsAtEnd:
		return 0, false
	case missed == 0:
		return min(FactorMax, 2*most), true
	case met == 0 && s.runs[len(s.runs)-1].Few:
		return 0, false
	case met == 0:
		return max(1/FactorMax, least/2), true
	}
	a := s.Answer()
	if a.Precise {
		return rounded(a.Low), !s.confirmed(a.Low)
	}
	return s.best(), true
}

// confirmed reports whether the threshold was met repeatedly at the low end of the interval, or at most a tenth below.
func (s *Search) confirmed(low float64) bool {
	met := 0
	for _, o := range s.runs {
		if o.Met && o.Factor <= 1.01*low && o.Factor >= 0.9*low {
			met++
		}
	}
	return met >= repeatsAtEnd
}

func (s *Search) tried() (least, most float64) {
	least, most = math.Inf(1), 0
	for _, o := range s.runs {
		least, most = min(least, o.Factor), max(most, o.Factor)
	}
	return least, most
}

func (s *Search) count(met bool) (n int) {
	for _, o := range s.runs {
		if o.Met == met {
			n++
		}
	}
	return n
}

func (s *Search) at(factor float64) (n int) {
	for _, o := range s.runs {
		if o.Factor == factor {
			n++
		}
	}
	return n
}

// rounded has three significant digits, so that runs at the same rate are repeats of each other.
func rounded(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return short
}

// Answer is what the runs so far say.
func (s *Search) Answer() Answer {
	a := Answer{Kind: Unknown, Runs: slices.Clone(s.runs)}
	rates, factors := 0.0, 0.0
	for _, o := range s.runs {
		if o.Undecided != "" {
			a.Undecided++
		}
		if o.Invalid != "" {
			a.Invalid++
		}
		if o.Rate > 0 {
			rates, factors = rates+o.Rate, factors+o.Factor
		}
	}
	least, most := s.tried()
	switch met, missed := s.count(true), s.count(false); {
	case len(s.runs) == 0:
		return a
	case missed == 0:
		a.Kind, a.Factor, a.Low, a.High = AlwaysMet, most, most, most
	case met == 0:
		a.Kind, a.Factor, a.Low, a.High = NeverMet, least, least, least
	default:
		a.Kind = Found
		a.Low, a.Factor, a.High = s.quantile((1-confidence)/2), s.quantile(0.5), s.quantile((1+confidence)/2)
		a.Precise = a.High/a.Low <= precision
	}
	if factors > 0 {
		perFactor := rates / factors
		a.Rate, a.RateLow, a.RateHigh = a.Factor*perFactor, a.Low*perFactor, a.High*perFactor
	}
	a.Contradiction = s.contradiction()
	return a
}

// quantile of the knee's distribution over all slopes.
func (s *Search) quantile(q float64) float64 {
	sum, step := 0.0, s.logs[1]-s.logs[0]
	for k, at := range s.logs {
		mass := 0.0
		for _, list := range s.weights {
			mass += list[k]
		}
		if sum+mass >= q && mass > 0 {
			return math.Exp(at + step*((q-sum)/mass-0.5)) // within a step of the grid the mass is even
		}
		sum += mass
	}
	return math.Exp(s.logs[len(s.logs)-1])
}

// contradictionMin is how much faster a run that meets the threshold is than one that misses it, for them to contradict each other
// beyond the noise that runs have.
const contradictionMin = 1.5

func (s *Search) contradiction() string {
	missed, met := math.Inf(1), 0.0
	for _, o := range s.runs {
		switch {
		case o.Met:
			met = max(met, o.Factor)
		case o.Undecided == "":
			missed = min(missed, o.Factor)
		}
	}
	if met < contradictionMin*missed {
		return ""
	}
	return fmt.Sprintf("Runs contradict each other: one missed the threshold at %.3g times the scenario's rate and one met it at %.3g times.", missed, met)
}
