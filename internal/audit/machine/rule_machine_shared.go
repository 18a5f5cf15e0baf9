package machine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var Shared = rule.Rule{
	Code:    "machine-shared",
	Summary: "another run used the same machine at the same time",
	Doc: "Local runs of different users or runs folders may run side by side, because none of them can power off nodes of " +
		"another. They share CPUs, memory, page cache and often the disk, so the numbers of both include a second load. " +
		"Both runs have this finding. The end of the other run is known to within 2 seconds.",
	Example: `Run "20260102-101500-abcdef" (process 4711 of eve@db7) used the same machine from 1:10 to 3:40.`,
	Check:   checkMachineShared,
}

func checkMachineShared(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	open := map[string]int{}
	for _, e := range in.Events {
		i, known := open[e.Subject]
		switch {
		case e.Kind == interval.EventShared && !known:
			open[e.Subject] = len(list)
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: e.AtNanos, ToNanos: -1,
				Evidence: []string{unit.FormatClock(e.AtNanos) + ": " + e.Message},
				Advice:   "Repeat the run without other runs on this machine before comparing its numbers."})
		case e.Kind == interval.EventAlone && known:
			delete(open, e.Subject)
			list[i].ToNanos = e.AtNanos
			list[i].Evidence = append(list[i].Evidence, unit.FormatClock(e.AtNanos)+": "+e.Message)
		}
	}
	for i := range list {
		f := &list[i]
		until := "to " + unit.FormatClock(f.ToNanos)
		if f.ToNanos < 0 {
			f.ToNanos, until = in.Summary.Duration, "until this run ended"
		}
		f.Claim = fmt.Sprintf("Run %q used the same machine from %s %s.", f.Subject, unit.FormatClock(f.FromNanos), until)
	}
	return list
}
