package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

var powerCut = rule.Rule{
	Code:    "power-cut-unrecorded",
	Summary: "I/O right before a power cut was not recorded",
	Doc: "A generator reports its operations once per interval of one second. When the run cuts the power of a VM, the " +
		"current interval is lost: its operations, including the slow ones in flight, are in no total, chart or " +
		"percentile. This is expected. The numbers do not describe the moment of the power cut.",
	Example: `I/O of OLTP in the last 930 ms or less before the power cut was not recorded (4 VMs).`,
	Check:   checkPowerCut,
}

func checkPowerCut(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		f := finding.Finding{Severity: finding.Info, Subject: l.Workload}
		var longest int64
		count := 0
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			at, cut := cutAt(in, s)
			if s.Final || !cut {
				continue
			}
			lost := max(0, at-s.LastNanos)
			if count == 0 || s.LastNanos < f.FromNanos {
				f.FromNanos = s.LastNanos
			}
			f.ToNanos = max(f.ToNanos, at)
			longest = max(longest, lost)
			count++
			if len(f.Evidence) < evidenceMax {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: last interval ends at %s, power cut detected %s later", s.VM,
					unit.FormatClock(s.LastNanos), rule.Span(lost)))
			}
		}
		if count == 0 {
			continue
		}
		f.Claim = fmt.Sprintf("I/O of %s in the last %s or less before the power cut was not recorded (%s).", in.Name(l),
			rule.Span(longest), textio.Plural(count, "VM"))
		list = append(list, f)
	}
	return list
}

// cutAt returns the recorded time at which the run powered off the VM of s during its workload.
func cutAt(in *rule.Input, s *digest.Stream) (atNanos int64, cut bool) {
	for _, e := range in.Events {
		if e.CutByRun && e.Kind == interval.EventAnnotation && e.Subject == s.VM && e.Workload == s.Workload && e.Instance == s.Instance &&
			e.Prefill == s.Prefill {
			return e.AtNanos, true
		}
	}
	return 0, false
}
