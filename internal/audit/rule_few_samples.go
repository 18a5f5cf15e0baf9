package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

// A percentile wants about ten operations beyond it; with fewer it is the luck of a single one.
const (
	samplesP999 = 10_000
	samplesP99  = 1_000
)

var fewSamples = Rule{
	Code:    "few-samples",
	Summary: "too few operations for a high percentile",
	Documentation: "About ten operations should lie beyond a percentile: 10,000 operations for p99.9, 1,000 for p99. " +
		"With fewer, the number is one unlucky operation and will differ in the next run.",
	Example: `OLTP has only 4,210 read operations: its p99.9 rests on 4 of them.`,
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
				Claim: fmt.Sprintf("%s has only %s %s operations: its %s rests on %s of them.", in.name(l), whole(n),
					l.Engine().Operation(d), percentile, orFewer(beyond)),
				Advice: "Run it longer, or read lower percentiles.",
			})
		}
	}
	return list
}

func orFewer(n uint64) string {
	if n == 0 {
		return "less than one"
	}
	return whole(n)
}
