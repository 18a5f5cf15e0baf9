package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
)

// shortNanos is the shortest runtime with a usable mean: caches and queues need seconds to fill.
const shortNanos = int64(10e9)

var shortWorkload = rule.Rule{
	Code:    "short-workload",
	Summary: "a workload ran for less than ten seconds",
	Doc: "In the first seconds caches, queues and power states of devices are still changing. The mean of so short a run " +
		"describes the warm-up.",
	Example: `randread ran for only 4.2 s.`,
	Check:   checkShortWorkload,
}

func checkShortWorkload(in *rule.Input) []finding.Finding {
	f := finding.Finding{Severity: finding.Warning}
	var shortest *result.LoadSummary
	for _, l := range rule.Measured(in) {
		lasted := l.ToNanos - l.FromNanos
		if lasted >= shortNanos {
			continue
		}
		if shortest == nil || lasted < shortest.ToNanos-shortest.FromNanos {
			shortest = l
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s", in.Name(l), rule.Span(lasted)))
	}
	switch {
	case shortest == nil:
		return nil
	case len(f.Evidence) == 1:
		f.Claim = fmt.Sprintf("%s ran for only %s.", in.Name(shortest), rule.Span(shortest.ToNanos-shortest.FromNanos))
		f.Subject, f.FromNanos, f.ToNanos, f.Evidence = shortest.Workload, shortest.FromNanos, shortest.ToNanos, nil
	default:
		f.Claim = fmt.Sprintf("%d workloads ran for less than %s (shortest: %s, %s).", len(f.Evidence), rule.Span(shortNanos),
			in.Name(shortest), rule.Span(shortest.ToNanos-shortest.FromNanos))
	}
	if in.Manifest.Rehearsal != nil {
		f.Severity = finding.Info // the rehearsal's own finding says it all
	}
	return []finding.Finding{f}
}
