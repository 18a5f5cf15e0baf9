package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var vmStopped = Rule{
	Code:    "vm-stopped",
	Summary: "a VM stopped, and the run had no part in it",
	Documentation: "The provider says that a VM has no power any more, or stands still after a fault, although nobody in the run switched it off: its " +
		"system crashed, its emulator ended, its storage is full, or somebody cut its power. From then on sums lack its part, and others had what it " +
		"would have used. The moment is that of the hypervisor's event; where none arrived, it lies between the last sign of life and its discovery.",
	Example: `OLTP-0002 stopped by itself at 2:21: libvirt calls it "shut off (crashed)": its system panicked, or its emulator ended.`,
	Check:   checkVMStopped,
}

func checkVMStopped(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventVMStopped {
			continue
		}
		from, when := e.AtNanos-e.UncertainNanos, "at "+clock(e.AtNanos)
		if clock(from) != clock(e.AtNanos) {
			when = fmt.Sprintf("between %s and %s", clock(from), clock(e.AtNanos))
		}
		list = append(list, finding.Finding{Severity: finding.Unknown, Subject: e.Subject, FromNanos: from, ToNanos: e.AtNanos,
			Claim:  fmt.Sprintf("%s stopped by itself %s: %s.", e.Subject, when, e.Error),
			Advice: "Find the reason in the log of its emulator and on its console; then run again.",
		})
	}
	return list
}
