package audit

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var engineFallback = rule.Rule{
	Code:    "engine-fallback",
	Summary: "the native engine ran without io_uring or through the page cache, or engines differ within a run",
	Doc: "Where the kernel refuses io_uring, the native engine uses libaio, or one thread for each operation in flight. " +
		"Both cost more CPU per operation, so small blocks at high queue depth reach fewer IOPS than the target can " +
		"deliver. On a file system without direct I/O (O_DIRECT) the load is buffered, and reads may come from the page " +
		"cache. Small differences between engines are not differences of the target.",
	Example: `OLTP ran with "native libaio (io_uring refused: operation not permitted)": io_uring was not used.`,
	Check:   checkEngineFallback,
}

func checkEngineFallback(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, l := range rule.Measured(in) {
		var fell, buffered []interval.Engine // VMs of one load may differ
		for _, e := range l.Engines {
			if e.DoesIO() { // others count operations of their own, which nothing compares
				kinds[e.Name] = true
			}
			if e.Fallback != nil {
				fell = append(fell, e)
			}
			if len(e.Noted(interval.NoteBuffered)) > 0 {
				buffered = append(buffered, e)
			}
		}
		key := l.Workload + interval.EngineText(append(slices.Clone(fell), buffered...))
		if seen[key] {
			continue
		}
		seen[key] = true
		if len(fell) > 0 {
			list = append(list, finding.Finding{Severity: finding.Info, Subject: l.Workload,
				Claim: fmt.Sprintf("%s ran with %q: %s was not used.", in.Name(l), interval.EngineText(fell), fell[0].Fallback.From)})
		}
		if len(buffered) > 0 {
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload,
				Claim: fmt.Sprintf("%s ran with %q: its numbers may be those of the page cache.", in.Name(l), interval.EngineText(buffered))})
		}
	}
	if len(kinds) > 1 {
		list = append(list, finding.Finding{Severity: finding.Warning,
			Claim: "Workloads of this run used different engines; do not compare them with each other."})
	}
	return list
}
