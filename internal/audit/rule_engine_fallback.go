package audit

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
)

var engineFallback = Rule{
	Code:    "engine-fallback",
	Summary: "the native engine ran without io_uring or through the page cache, or engines differ within a run",
	Documentation: "Where the kernel refuses io_uring, the native engine keeps a queue with libaio, or with one thread for " +
		"each operation in flight. That costs more CPU per operation, so that small blocks at high queue depth reach fewer " +
		"IOPS than the target could do. A file system that refuses direct access (O_DIRECT) leaves the load buffered: reads may come from the page cache. " +
		"Numbers of different engines are not comparable to the last per cent.",
	Example: `OLTP ran with "native libaio (io_uring refused: operation not permitted)": io_uring was not used.`,
	Check:   checkEngineFallback,
}

func checkEngineFallback(in *Input) []finding.Finding {
	var list []finding.Finding
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, l := range measured(in) {
		if l.Engine == "" {
			continue
		}
		for engine := range strings.SplitSeq(l.Engine, result.EngineSeparator) {
			if kind := strings.Fields(engine); len(kind) > 0 && kind[0] != "and" {
				kinds[kind[0]] = true
			}
		}
		if seen[l.Workload+l.Engine] {
			continue
		}
		seen[l.Workload+l.Engine] = true
		// VMs of one load may differ, so that what matters need not stand first.
		if strings.Contains(l.Engine, "io_uring refused") {
			list = append(list, finding.Finding{Severity: finding.Info, Subject: l.Workload,
				Claim: fmt.Sprintf("%s ran with %q: io_uring was not used.", in.name(l), l.Engine)})
		}
		if strings.Contains(l.Engine, "; buffered:") {
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload,
				Claim: fmt.Sprintf("%s ran with %q: its numbers may be those of the page cache.", in.name(l), l.Engine)})
		}
	}
	if len(kinds) > 1 {
		list = append(list, finding.Finding{Severity: finding.Warning,
			Claim: "The workloads of this run were driven by different engines; do not compare them with each other."})
	}
	return list
}
