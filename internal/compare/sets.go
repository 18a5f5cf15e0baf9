package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// SetRunsMax bounds the runs of one set.
const SetRunsMax = 50

// Verdict says whether a number of set B differs from that of set A.
type Verdict string

const (
	Different Verdict = "different"
	NoneSeen  Verdict = "no difference seen"
	TooFew    Verdict = "too few runs"
)

// Power is the probability with which a difference of the size that Number.Detectable has is called different.
const Power = 0.95

// detectableMax is the largest difference that may go unseen before the runs are too few for "no difference seen".
const detectableMax = 1

// Sets are two sets of repeated runs, A and B: what the same thing does from run to run is the measure of chance.
type Sets struct {
	Base     int      `json:"base_runs"`           // the first runs of the comparison are set A, the others set B
	Tested   int      `json:"numbers_tested"`      // together: the more there are, the more one of them must differ to count
	Level    float64  `json:"false_positive_rate"` // for all numbers together, by Holm's method
	Power    float64  `json:"power"`               // of Detectable
	Numbers  []Number `json:"numbers"`
	Counts   []Count  `json:"counts"`
	LeftOut  []string `json:"left_out"` // sentences: what was not compared, and why
	measured []Number // every statistic, for gates
}

// Number is one number of all runs of both sets. Means are geometric, the ratio is that of B to A.
type Number struct {
	Measure
	Base     []result.Number `json:"base"` // one per run of A; null if a run lacks it
	New      []result.Number `json:"new"`
	BaseMean result.Number   `json:"base_mean"`
	NewMean  result.Number   `json:"new_mean"`
	Ratio    result.Number   `json:"ratio"`
	Low      result.Number   `json:"low"` // 95 % interval of the ratio, for this number alone
	High     result.Number   `json:"high"`
	P        result.Number   `json:"p"` // adjusted for the numbers tested together
	// Noise is the relative difference that two runs of the same set do not exceed in 95 % of pairs.
	Noise result.Number `json:"noise"`
	// Detectable is the smallest relative difference that these sets show with probability Power.
	Detectable result.Number `json:"detectable"`
	Verdict    Verdict       `json:"verdict"` // "" if the number cannot be compared
	Reason     string        `json:"reason"`  // of "" and of "too few runs"

	prefill    bool    // of the load that wrote the data
	ofLoad     bool    // a latency of a workload that is judged if no result is
	resolution float64 // the relative difference that shows nothing
}

// Count is one kind of failure of one workload in all runs. Counts have no ratio: one of them may be zero.
type Count struct {
	Workload string          `json:"workload"`
	Name     string          `json:"name"` // "errors", "not issued"
	Base     []result.Number `json:"base"`
	New      []result.Number `json:"new"`
}

// OfSets compares a set of runs with another. It returns an error for an empty set, a run that is in it twice, and what Runs refuses.
func OfSets(base, others []*document.Run, o Options) (*Comparison, error) {
	runs := slices.Concat(base, others)
	if len(base) == 0 || len(others) == 0 || max(len(base), len(others)) > SetRunsMax {
		return nil, &diag.Error{Code: "compare-count", Exit: diag.ExitUsage,
			Message: fmt.Sprintf("compare %d runs with %d", len(base), len(others)), Hint: fmt.Sprintf("each set has 1 to %d runs", SetRunsMax)}
	}
	known := map[string]bool{}
	for _, run := range runs {
		if known[run.Manifest.Run] {
			return nil, &diag.Error{Code: "compare-twice", Exit: diag.ExitUsage,
				Message: fmt.Sprintf("compare run %q with itself", run.Manifest.Run), Hint: "every run is in one set, once: repeat the run"}
		}
		known[run.Manifest.Run] = true
	}
	names := make([]string, len(runs))
	for i := range runs {
		names[i] = setName(i, len(base))
	}
	c, documents, err := build(runs, names, o)
	if err != nil {
		return nil, err
	}
	s := &Sets{Base: len(base), Level: stat.Level, Power: Power}
	s.measured = measure(c, s)
	s.Numbers = s.choose(c)
	s.Tested = test(s.Numbers)
	s.Counts = counts(c, len(base))
	c.Sets, c.Largest = s, []Difference{}
	c.Costs, c.Scaling = comparedCosts(documents, len(base)), comparedScaling(documents, len(base))
	testShifts(c.shifts(), len(base), len(others))
	c.Warnings = append(s.factorWarnings(c.Factors), c.Warnings...)
	c.Headline = s.headline(c)
	return c, nil
}

// test compares each number of two sets, together with the others, and returns how many have enough runs and values for it.
func test(numbers []Number) int {
	ratios, p := make([]stat.Ratio, len(numbers)), []float64{}
	var tested []int
	for i := range numbers {
		n := &numbers[i]
		n.reset()
		if n.Reason = n.missing(); n.Reason != "" {
			continue
		}
		n.BaseMean, n.NewMean = geometricMean(n.Base), geometricMean(n.New)
		n.Ratio = n.NewMean / n.BaseMean
		if min(len(n.Base), len(n.New)) < 2 {
			n.Verdict, n.Reason = TooFew, "a single run does not show how much it varies from run to run"
			continue
		}
		ratios[i], _ = stat.RatioOf(floats(n.Base), floats(n.New), n.resolution)
		tested, p = append(tested, i), append(p, ratios[i].P)
	}
	for rank, adjusted := range stat.Holm(p) {
		n, r := &numbers[tested[rank]], &ratios[tested[rank]]
		n.P, n.Low, n.High, n.Noise = result.Number(adjusted), result.Number(r.Low), result.Number(r.High), result.Number(r.Noise)
		n.Detectable = result.Number(r.Detectable(stat.Level/float64(len(tested)), Power))
		switch {
		case adjusted < stat.Level:
			n.Verdict = Different
		case n.Detectable > detectableMax:
			n.Verdict, n.Reason = TooFew, "a change to the double or the half may go unseen"
		default:
			n.Verdict = NoneSeen
		}
	}
	return len(tested)
}

func (n *Number) reset() {
	n.BaseMean, n.NewMean, n.Ratio, n.Low, n.High, n.P, n.Noise, n.Detectable = unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown
	n.Verdict = ""
}

// missing returns why a number has no ratio; "" if it has one. A reason that is already known stays.
func (n *Number) missing() string {
	if n.Reason != "" {
		return n.Reason
	}
	for set, values := range [][]result.Number{n.Base, n.New} {
		for i, v := range values {
			switch name := setName(i+set*len(n.Base), len(n.Base)); {
			case math.IsNaN(float64(v)):
				return "run " + name + " does not have it"
			case v <= 0:
				return "it is 0 in run " + name
			}
		}
	}
	return ""
}

// Label is the result or workload and the statistic.
func (n *Number) Label() string {
	text := n.Title
	if n.Kind != "" {
		text += ", " + n.Kind + " time"
	}
	return text + ", " + n.Metric
}

func floats(values []result.Number) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = float64(v)
	}
	return list
}

func geometricMean(values []result.Number) result.Number {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(float64(v)) / float64(len(values))
	}
	return result.Number(math.Exp(sum))
}

// counts lists failures of workloads that any run has.
func counts(c *Comparison, base int) []Count {
	list := []Count{}
	for i := range c.Loads {
		for _, f := range c.Loads[i].Figures {
			failed := slices.ContainsFunc(f.Values, func(v result.Number) bool { return v > 0 })
			if (f.Name == figureErrors || f.Name == figureDropped) && failed {
				list = append(list, Count{Workload: c.Loads[i].Workload, Name: f.Name, Base: f.Values[:base], New: f.Values[base:]})
			}
		}
	}
	return list
}
