package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
)

var powerCut = Rule{
	Code:    "power-cut-unrecorded",
	Summary: "what a load did right before its VM lost power is in no number",
	Documentation: "A generator hands over what it did once an interval, which is a second long. When the run itself cuts the power " +
		"of its VM, the interval that was going on dies with it: its operations are in no total, no chart and no percentile, and the slow ones that were in " +
		"flight least of all. Nothing went wrong; but these numbers say nothing of the moment of the cut itself.",
	Example: `OLTP on 4 VMs lost power by the run itself; what it did in up to 930 ms before that is in no number.`,
	Check:   checkPowerCut,
}

func checkPowerCut(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		f := finding.Finding{Severity: finding.Info, Subject: l.Workload}
		var longest int64
		count := 0
		for _, s := range in.Digest.of(l.Workload, l.Instance, l.Prefill) {
			at, cut := in.cutAt(s)
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
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: last interval ends at %s, the cut was noticed %s later", s.VM, clock(s.LastNanos), span(lost)))
			}
		}
		if count == 0 {
			continue
		}
		f.Claim = fmt.Sprintf("%s on %s lost power by the run itself; what it did in up to %s before that is in no number.", in.name(l),
			textio.Plural(count, "VM"), span(longest))
		list = append(list, f)
	}
	return list
}

// cutAt returns when the run was seen to have powered off the VM of s under its workload.
func (in *Input) cutAt(s *Stream) (atNanos int64, cut bool) {
	for _, e := range in.Events {
		if e.CutByRun && e.Kind == interval.EventAnnotation && e.Subject == s.VM && e.Workload == s.Workload && e.Instance == s.Instance &&
			e.Prefill == s.Prefill {
			return e.AtNanos, true
		}
	}
	return 0, false
}
