package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

var BufferedWrites = rule.Rule{
	Code:    "buffered-writes",
	Summary: "writes ended in the page cache",
	Doc: "A write without direct I/O completes when its data is in memory. Its latency is that of a copy, and its rate that of memory " +
		"until the kernel throttles the writer. The disk does the work later, perhaps after the measurement. Jobs that write " +
		"synchronously or flush (sync, fsync, fdatasync) are not reported.",
	Example:  `OLTP wrote 12 GiB through the page cache (jobs "log" and "data"): latency and rate of its writes are those of memory.`,
	Check:    checkBufferedWrites,
	Flatters: true,
}

func checkBufferedWrites(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		jobs := l.Jobs(func(j *load.JobPlan) bool { return j.Writes && !j.Direct && !j.Flushes })
		written := l.Directions[interval.Write].Bytes
		if len(jobs) == 0 || written == 0 {
			continue
		}
		list = append(list, in.About(l.LoadSummary, finding.Warning,
			"Set direct=1 in the job file, or flush as the application does (fsync=1, sync=1).",
			"%s wrote %s through the page cache (%s): latency and rate of its writes are those of memory.", in.Name(l.LoadSummary),
			unit.FormatBytes(int64(written)), rule.JobsText(jobs)))
	}
	return list
}
