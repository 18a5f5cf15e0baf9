package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var vmStopped = rule.Rule{
	Code:    "vm-stopped",
	Summary: "a VM stopped unexpectedly",
	Doc: "The provider reports that a VM is off or paused after a fault, although the run did not power it off: its guest crashed, QEMU " +
		"exited, its storage is full, or it lost power. From then on sums lack its part, and other VMs have its resources. The time " +
		"is that of the hypervisor's event; without an event, it lies between the last response of the VM and the detection.",
	Example: `OLTP-0002 stopped unexpectedly at 2:21: libvirt state "shut off (crashed)": guest panic or QEMU exit.`,
	Check:   checkVMStopped,
}

func checkVMStopped(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventVMStopped {
			continue
		}
		from, when := e.AtNanos-e.UncertainNanos, "at "+unit.FormatClock(e.AtNanos)
		if unit.FormatClock(from) != unit.FormatClock(e.AtNanos) {
			when = fmt.Sprintf("between %s and %s", unit.FormatClock(from), unit.FormatClock(e.AtNanos))
		}
		list = append(list, finding.Finding{Severity: finding.Undecided, Subject: e.Subject, FromNanos: from, ToNanos: e.AtNanos,
			Claim:  fmt.Sprintf("%s stopped unexpectedly %s: %s.", e.Subject, when, e.Error),
			Advice: "Check the VM's QEMU log and console, then repeat the run.",
		})
	}
	return list
}
