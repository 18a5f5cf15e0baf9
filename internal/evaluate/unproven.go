package evaluate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/unit"
)

// unproven leaves thresholds undecided whose numbers do not hold. A missed one stays missed if the fault can only have made the numbers
// better than the truth.
func unproven(s *result.Summary, results []scenario.Result) {
	for i := range s.Results {
		for k := range s.Results[i].Checks {
			c := &s.Results[i].Checks[k]
			if c.Reason != "" {
				continue
			}
			for _, f := range s.Findings {
				if f.Severity != finding.Undecided || f.Flatters && !c.Passed || !concerns(&f, s, results[i], c) {
					continue
				}
				outcome := "misses"
				if c.Passed {
					outcome = "meets"
				}
				c.Passed, c.Reason = false, fmt.Sprintf("measured %s, which %s the threshold, but the numbers are invalid: %s", valueText(c), outcome,
					strings.TrimSuffix(f.Claim, "."))
				break
			}
		}
	}
}

// concerns reports whether a finding is about the numbers that a threshold of a result was compared with: about the whole run, or about
// a load of the result at that time.
func concerns(f *finding.Finding, s *result.Summary, r scenario.Result, c *result.Check) bool {
	for _, w := range s.Windows {
		if w.Name == c.Window && c.Window != "" && f.ToNanos > f.FromNanos && (f.ToNanos <= w.FromNanos || f.FromNanos >= w.ToNanos) {
			return false
		}
	}
	keep, _ := choose(r)
	traffic := r.Source == scenario.FromGroup || r.Source == scenario.FromWorkload
	ofLoad := func(l result.LoadSummary) bool { return l.Workload == f.Subject }
	ofResult := func(l result.LoadSummary) bool { return ofLoad(l) && keep(l.Workload, l.Group, l.Prefill) }
	return !traffic || !slices.ContainsFunc(s.Loads, ofLoad) || slices.ContainsFunc(s.Loads, ofResult)
}

// missedBy is what was measured where a threshold was missed, and how it compares with a pinned baseline.
func missedBy(c *result.Check) string {
	text := ""
	if !math.IsNaN(float64(c.Value)) {
		text = ": measured " + valueText(c)
	}
	if c.Change != "" {
		text += ", " + c.Change
	}
	return text
}

// valueText is the value of a check with its unit.
func valueText(c *result.Check) string {
	text, v := "", float64(c.Value)
	if c.AtLeast {
		text = "at least "
	}
	switch {
	case math.IsNaN(v):
		return "nothing"
	case c.Unit == "ns":
		return text + unit.FormatLatency(v)
	case c.Unit == "s":
		return text + unit.FormatLatency(1e9*v)
	case c.Unit == "B/s":
		return text + unit.FormatRate(v)
	case c.Unit == "%":
		return text + unit.FormatPercent(v/100)
	}
	return text + strings.TrimSpace(unit.FormatCount(v)+" "+c.Unit)
}
