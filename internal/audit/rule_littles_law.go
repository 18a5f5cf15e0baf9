package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// A record contradicts Little's law when operations in flight, as latency and rate have it, exceed the queue depth: by more than 5 %
// its latency is in doubt, by more than 10 % it is wrong (0.8 % is the error of fio's histograms).
const (
	littleNoticed = 0.05
	littleWrong   = 0.10
)

var littlesLaw = rule.Rule{
	Code:    "littles-law",
	Summary: "latency and rate of a workload contradict its queue depth",
	Doc: "Little's law: the mean number of operations in flight is their rate times their mean latency. It cannot exceed the queue " +
		"depth of all jobs. If it does, latencies are too high or operations were counted twice, and neither number can be used.",
	Example: `OLTP: 48,200 operations/s at 0.84 ms are 40.5 in flight, but its jobs have a queue depth of 32.`,
	Check:   checkLittlesLaw,
}

func checkLittlesLaw(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		depth := l.Plan.Depth()
		var lasted, service, operations float64
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			lasted, service, operations = lasted+float64(s.Lasted()), service+s.ServiceNanos, operations+float64(s.Operations)
		}
		if depth == 0 || lasted < float64(shortNanos) || service < (1+littleNoticed)*float64(depth)*lasted {
			continue
		}
		f := in.About(l.LoadSummary, finding.Warning, "Do not use these numbers. Report it, with the bundle.",
			"%s: %s operations/s per VM at %s are %.1f in flight, but its jobs have a queue depth of %d.", in.Name(l.LoadSummary),
			unit.FormatWhole(uint64(operations/lasted*1e9)), unit.FormatLatency(service/operations), service/lasted, depth)
		if service > (1+littleWrong)*float64(depth)*lasted {
			f.Severity = finding.Undecided
		}
		list = append(list, f)
	}
	return list
}
