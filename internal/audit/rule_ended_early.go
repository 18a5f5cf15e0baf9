package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// earlyShare of its runtime is missing from a load that ended early; the last interval and the start of an agent are less.
const earlyShare = 0.05

var endedEarly = rule.Rule{
	Code:    "ended-early",
	Summary: "a workload ended before its runtime",
	Doc: "The step gives the workload a runtime, but its jobs were done before: without time_based, a job ends when its size is " +
		"transferred. A program such as pgbench ended before, or needed a part of the runtime to start and connect. Windows and " +
		"charts without the load are empty, and sums over the planned time are too low. Loads that a step, an error or a power " +
		"cut ended are not reported.",
	Example: `OLTP ended after 12.4 s of 1 m: its jobs had transferred their size.`,
	Check:   checkEndedEarly,
}

func checkEndedEarly(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		runtime, ended := int64(in.KnownPlan().Runtime(l.Workload, l.Instance)), l.ToNanos-l.FromNanos
		if runtime == 0 || l.Error != "" || in.Summary.Ended != result.EndedCompleted || float64(ended) >= (1-earlyShare)*float64(runtime) || stopped(in, l) {
			continue
		}
		claim, advice := "%s ended after %s of %s: its jobs had transferred their size.", "Set time_based=1 in the job file."
		if !l.Engine().DoesIO() {
			claim = "%s was measured for %s of %s: it started and connected in the rest, or ended early."
			advice = "Look at the output of the program in the bundle, and at the time that a connection takes."
		}
		list = append(list, in.About(l, finding.Warning, advice, claim, in.Name(l), rule.Span(ended), rule.Span(runtime)))
	}
	return list
}

// stopped reports whether a step or a power cut of the run ended the load on one VM at least.
func stopped(in *rule.Input, l *result.LoadSummary) bool {
	for _, e := range in.Events {
		if e.Workload == l.Workload && e.Instance == l.Instance && e.Prefill == l.Prefill && (e.Stopped || e.CutByRun || e.Error != "" && e.Kind == interval.EventWorkloadEnd) {
			return true
		}
	}
	return false
}
