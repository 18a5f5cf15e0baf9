package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// A stable percentile has about ten operations beyond it.
const (
	samplesP999 = 10_000
	samplesP99  = 1_000
)

var fewSamples = Rule{
	Code:    "few-samples",
	Summary: "too few operations for a high percentile",
	Doc: "A stable percentile has about ten operations beyond it: 10,000 operations for p99.9, 1,000 for p99. With fewer, " +
		"a single slow operation decides the value, and the next run will differ.",
	Example: `OLTP has too few read operations (4,210) for a stable p99.9: 4 lie beyond it.`,
	Check:   checkFewSamples,
}

func checkFewSamples(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		for d := range l.Directions {
			n := l.Directions[d].Operations
			if n == 0 || n >= samplesP999 {
				continue
			}
			percentile, beyond := "p99.9", n/1000
			if n < samplesP99 {
				percentile, beyond = "p99 (and p99.9)", n/100
			}
			list = append(list, finding.Finding{Severity: finding.Info, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
				Claim: fmt.Sprintf("%s has too few %s operations (%s) for a stable %s: %s beyond it.", in.name(l), l.Engine().Operation(d), unit.FormatWhole(n),
					percentile, beyondText(beyond)),
				Advice: "Run the workload longer, or use a lower percentile.",
			})
		}
	}
	return list
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
