package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

// unequalStreamsPercent is the mean difference of the fastest and the slowest stream from which a warning is issued, in percent of their mean.
// Streams of TCP that share a path differ by some ten percent; of two that differ by 100 %, one has three times the rate of the other.
// Whether there are as many streams as planned, the generator checks itself: iperf3 fails with streams-differ.
const unequalStreamsPercent = 100

var unequalStreams = rule.Rule{
	Code:    "unequal-streams",
	Summary: "parallel streams of a network load had very unequal shares",
	Doc: "Streams of one load have the same options, and share a network about equally. Where they do not, streams take different paths or " +
		"CPUs, or their options were not applied to all of them: the sum hides a slow path, and the slow one may be what an application gets.",
	Example: `The streams of Mesh differed by 117 % of their mean.`,
	Check:   checkUnequalStreams,
}

func checkUnequalStreams(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for _, g := range l.Gauges {
			if spread := float64(g.Mean); g.Name == interval.GaugeStreamSpread && spread >= unequalStreamsPercent {
				list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
					Claim: fmt.Sprintf("The streams of %s differed by %s of their mean.", in.Name(l), unit.FormatWholePercent(spread/100)),
					Advice: "Compare the series of single streams; look for one slow path, one busy CPU, or a limit of single connections, and run one " +
						"direction at a time.",
				})
			}
		}
	}
	return list
}
