package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
)

var synchronousEngine = rule.Rule{
	Code:    "synchronous-engine",
	Summary: "an I/O engine that does one operation at a time was given a queue depth",
	Doc: "The engines sync, psync, vsync, pvsync, pvsync2 and mmap (psync is the default of fio) have one operation in flight " +
		"per clone, whatever iodepth says. The numbers are those of queue depth 1: throughput of a device that needs parallel " +
		"requests is far too low.",
	Example: `OLTP: job "data" requests iodepth=32 from a synchronous engine; it had 1 operation in flight per clone.`,
	Check:   checkSynchronousEngine,
}

func checkSynchronousEngine(in *rule.Input) []finding.Finding {
	return rule.AboutJobs(in, func(j *load.JobPlan) bool { return j.DepthAsked > 1 && j.QueueDepth == 1 }, func(l rule.Load, jobs []load.JobPlan) finding.Finding {
		verb := "requests"
		if len(jobs) > 1 {
			verb = "request"
		}
		return in.About(l.LoadSummary, finding.Warning, "Set ioengine=libaio or io_uring, or use numjobs instead of iodepth.",
			"%s: %s %s iodepth=%d from a synchronous engine; it had 1 operation in flight per clone.", in.Name(l.LoadSummary), rule.JobsText(jobs),
			verb, jobs[0].DepthAsked)
	})
}
