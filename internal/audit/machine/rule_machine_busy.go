package machine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

// waitingNoticed is the share of a minute in which something waits on a machine that is not idle; services alone stay below 2 %.
const waitingNoticed = 0.1

var Busy = rule.Rule{
	Code:    "machine-busy",
	Summary: "the machine was not idle before the run",
	Doc: "In the last minute before the run, tasks of the machine that then ran the load had to wait for a CPU or for I/O. A " +
		"build, a backup or another test may have gone on during the measurement. What it took from the load while it ran is " +
		"the subject of generator-starved and generator-stalled.",
	Example: `Before the run, tasks on this machine waited for a CPU in 60 % of a minute, and for I/O in 5 %.`,
	Check:   checkMachineBusy,
}

func checkMachineBusy(in *rule.Input) []finding.Finding {
	for _, e := range in.Events {
		u := e.Usage
		if e.Kind != interval.EventUsage || u == nil || max(u.CPUWaiting, u.IOWaiting) < waitingNoticed || !onThisMachine(in) {
			continue
		}
		return []finding.Finding{{Severity: finding.Info, Subject: e.Subject, ToNanos: e.AtNanos,
			Claim: fmt.Sprintf("Before the run, tasks on this machine waited for a CPU in %s of a minute, and for I/O in %s.",
				unit.FormatWholePercent(u.CPUWaiting), unit.FormatWholePercent(u.IOWaiting)),
			Advice: "Repeat the run on an idle machine."}}
	}
	return nil
}
