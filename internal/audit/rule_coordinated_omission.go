package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var coordinatedOmission = rule.Rule{
	Code:    "coordinated-omission",
	Summary: "a closed loop issued nothing while operations hung",
	Doc: "A workload without a rate issues the next operation when an earlier one has completed. While the target hangs, it issues " +
		"nothing, so that a stall of seconds is one slow operation among millions, and no percentile shows it. The corrected " +
		"percentile counts the operations that would have been issued, one per mean service time and pause. Slow operations below " +
		"100 ms do not count as stalls.",
	Example:  `OLTP is a closed loop that hung: p99.9 of read operations is 310 µs as measured, and would be 1.87 s if it had not stopped issuing operations.`,
	Check:    checkOmission,
	Flatters: true,
}

// omissionLeast is how many operations a load needs for a p99 that could hide a stall.
const omissionLeast = 100

func checkOmission(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if w, known := in.KnownPlan().Workload(l.Workload); l.Engine().Loop != interval.LoopClosed || known && w.Load != nil && w.Load.Computes {
			continue // computation waits for its CPU, which generator-starved finds
		}
		for d := range l.Directions {
			h := l.Directions[d].Service
			if h == nil || h.Count() < omissionLeast {
				continue
			}
			corrected := h.Corrected(analysis.Pace(h, int64(l.VMs)*(l.ToNanos-l.FromNanos)), analysis.HungNanos)
			for _, p := range []struct {
				name string
				q    float64
			}{{"p99", 0.99}, {"p99.9", 0.999}} {
				before, after := h.Quantile(p.q), corrected.Quantile(p.q)
				if !analysis.Hung(before, after) {
					continue
				}
				list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
					Claim: fmt.Sprintf("%s is a closed loop that hung: %s of %s operations is %s as measured, and would be %s if it had not stopped issuing operations.",
						in.Name(l), p.name, l.Engine().Operation(d), unit.FormatLatency(before), unit.FormatLatency(after)),
					Advice: "Give the workload a rate (rate_iops), or use the corrected percentile (corrected_" + p.name + ").",
				})
				break
			}
		}
	}
	return list
}
