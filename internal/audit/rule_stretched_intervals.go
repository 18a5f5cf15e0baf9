package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

// stretchedFactor is how much longer than the others an interval may be before it is worth a note.
const stretchedFactor = 1.5

var stretchedIntervals = rule.Rule{
	Code:    "stretched-intervals",
	Summary: "some intervals are much longer than the others",
	Doc: "A generator delivers its counters once per interval. This one delivered some of them late, so that the next interval " +
		"covers more time. Charts draw it as one piece of its length with one value: whether I/O stopped within it is not known, " +
		"and none of its seconds counts as one at zero. Percentiles over the whole run are not affected.",
	Example: `Intervals of OLTP last up to 2.1 s (1 s on average, on OLTP-0001): charts do not resolve less.`,
	Check:   checkStretchedIntervals,
}

func checkStretchedIntervals(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			mean := s.Lasted() / int64(max(1, s.Intervals))
			if s.Intervals < 3 || float64(s.LengthMax) < stretchedFactor*float64(mean) {
				continue
			}
			list = append(list, in.About(l, finding.Info, "Give the generator more CPU, or use the native engine.",
				"Intervals of %s last up to %s (%s on average, on %s): charts do not resolve less.", in.Name(l), rule.Span(s.LengthMax), rule.Span(mean), s.VM))
			break
		}
	}
	return list
}
