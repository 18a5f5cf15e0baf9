package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// A stable percentile has about ten operations beyond it.
const (
	samplesP999 = 10_000
	samplesP99  = 1_000
)

var fewSamples = rule.Rule{
	Code:    "few-samples",
	Summary: "too few operations for a high percentile",
	Doc: "A stable percentile has about ten operations beyond it: 10,000 operations for p99.9, 1,000 for p99. With fewer, " +
		"a single slow operation decides the value, and the next run will differ.",
	Example: `OLTP has too few read operations (4,210) for a stable p99.9: 4 lie beyond it.`,
	Check:   checkFewSamples,
}

func checkFewSamples(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for d := range l.Directions {
			n := l.Directions[d].Operations
			if n == 0 || n >= samplesP999 || !timed(l) {
				continue
			}
			percentile, beyond := "p99.9", n/1000
			if n < samplesP99 {
				percentile, beyond = "p99 (and p99.9)", n/100
			}
			list = append(list, in.About(l, finding.Info, "Run the workload longer, or use a lower percentile.",
				"%s has too few %s operations (%s) for a stable %s: %s beyond it.", in.Name(l), l.Engine().Operation(d), unit.FormatWhole(n),
				percentile, beyondText(beyond)))
		}
	}
	for i := range in.Summary.Results {
		if f, few := fewInWindows(&in.Summary.Results[i]); few {
			list = append(list, f)
		}
	}
	return list
}

// timed reports whether a load has latencies of any operation.
func timed(l *result.LoadSummary) bool {
	return slices.ContainsFunc(l.Directions[:], func(t interval.Traffic) bool { return t.Service != nil && t.Service.Count() > 0 })
}

// fewInWindows looks at the windows for which a result prints a percentile.
func fewInWindows(r *result.Evaluated) (finding.Finding, bool) {
	windows, fewest := map[string]bool{}, uint64(math.MaxUint64)
	var percentile, where string
	for _, s := range r.Stats {
		name := ""
		switch all := s.Count + s.Unfinished; {
		case r.Type != "latency" || s.Window == "":
		case !math.IsNaN(float64(s.P99)) && all < samplesP99:
			name = "p99"
		case !math.IsNaN(float64(s.P999)) && all < samplesP999:
			name = "p99.9"
		}
		if name == "" {
			continue
		}
		windows[s.Window] = true
		if s.Count < fewest {
			fewest, percentile, where = s.Count, name, s.Window
		}
	}
	if len(windows) == 0 {
		return finding.Finding{}, false
	}
	claim := fmt.Sprintf("%s has too few operations for a stable %s in window %q (%s).", cmp.Or(r.Title, r.Name), percentile, where,
		unit.FormatWhole(fewest))
	if n := len(windows); n > 1 {
		claim = fmt.Sprintf("%s has too few operations for stable high percentiles in %d windows, fewest in %q: %s for %s.", cmp.Or(r.Title,
			r.Name), n, where,
			unit.FormatWhole(fewest), percentile)
	}
	return finding.Finding{Severity: finding.Info, Subject: r.Name, FromNanos: r.FromNanos, ToNanos: r.ToNanos, Claim: claim,
		Advice: "Let the steps that bound the window be further apart, or use a lower percentile."}, true
}

func beyondText(n uint64) string {
	switch n {
	case 0:
		return "less than one lies"
	case 1:
		return "1 lies"
	}
	return unit.FormatWhole(n) + " lie"
}
