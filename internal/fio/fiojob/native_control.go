package fiojob

import (
	"math"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// nativeControl lists the options of Control. Those with a different class in workloads are native where whole job files
// run on files that the reader creates (Options.Host).
var nativeControl = []spec{
	{name: "exitall", does: "end the other jobs selected by exit_what when this job ends", elsewhere: syntax.Delegate, why: whyLifecycle, apply: flag(func(j *Job) *bool { return &j.Control.ExitAll })},
	{name: "exitall_on_error", does: "end the other jobs selected by exit_what when this job fails", elsewhere: syntax.Delegate, why: whyLifecycle,
		apply: flag(func(j *Job) *bool { return &j.Control.ExitAllOnError })},
	{name: "exit_what", does: "jobs that exitall ends: the reporting group, those up to the next stonewall, or all", elsewhere: syntax.Delegate, why: whyLifecycle,
		apply: choice(func(j *Job) *string { return &j.Control.ExitWhat }, []string{"group", "stonewall", "all"}, nil)},
	{name: "wait_for", does: "start when all clones of this earlier job have ended", elsewhere: syntax.Delegate, why: whyLifecycle, apply: textOf(func(j *Job) *string { return &j.Control.WaitFor })},
	{name: "steadystate", does: "end the job when IOPS, bandwidth or mean latency is steady within a limit", elsewhere: syntax.Delegate, why: whySteady, apply: setSteadyState},
	{name: "steadystate_duration", does: "length of the window that must be steady", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.Duration }, time.Second)},
	{name: "steadystate_ramp_time", does: "time before the window begins", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.RampTime }, time.Second)},
	{name: "steadystate_check_interval", does: "interval between the compared values", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.CheckInterval }, time.Second)},

	{name: "latency_target", does: "search for the deepest queue at which latency stays below this value", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyTarget }, time.Microsecond)},
	{name: "latency_window", does: "time for which each depth is tested", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyWindow }, time.Microsecond)},
	{name: "latency_percentile", does: "share of operations that must meet the target", apply: setPercentile},
	{name: "latency_run", does: "continue to the end at the depth found, and adapt it", apply: boolean(func(j *Job) *bool { return &j.Control.LatencyRun })},
	{name: "max_latency", does: "end the job with an error if an operation is slower", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyMax }, time.Microsecond)},
	{name: "rate_min", does: "minimum bytes per second, by direction; below it, the job ends with an error", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.Control.RateMin }, 0, math.MaxInt64)},
	{name: "rate_iops_min", does: "minimum operations per second, by direction; below it, the job ends with an error", apply: countTriple(0, math.MaxInt32, func(j *Job, d Direction, v int64) {
		j.Control.RateIOPSMin[d] = v
	})},
	{name: "rate_cycle", does: "milliseconds over which rate_min and rate_iops_min are measured", apply: millis(func(j *Job) *time.Duration { return &j.Control.RateCycle }, 1)},
	{name: "rate_ignore_thinktime", does: "no effect: think time never shifts a schedule", apply: boolean(func(j *Job) *bool { return &j.Control.RateIgnoreThink })},

	{name: "thinktime_spin", does: "part of the pause spent computing", apply: duration(func(j *Job) *time.Duration { return &j.Control.ThinkTimeSpin }, time.Microsecond)},
	{name: "thinktime_iotime", does: "time between pauses, during which operations are issued", apply: duration(func(j *Job) *time.Duration { return &j.Control.ThinkTimeIOTime }, time.Second)},
	{name: "thinktime_blocks_type", does: "whether thinktime_blocks counts issued or completed operations; in both cases, the pause waits for the operations in flight", apply: word(func(j *Job) *bool { return &j.Control.ThinkTimeIssue }, "issue", "complete", "issue")},

	{name: "cpus_allowed", does: "CPUs that the job's threads may run on", apply: setCPUs},
	{name: "cpumask", does: "CPUs that the job's threads may run on, as a bit mask", apply: setCPUMask},
	{name: "cpus_allowed_policy", does: "shared: all clones run on all of these CPUs; split: each clone in turn gets one of them", apply: word(func(j *Job) *bool { return &j.Control.CPUsSplit }, "split", "shared", "split")},
	{name: "nice", does: "priority of the job's threads", apply: count(func(j *Job) *int { return &j.Control.Nice }, -20, 19)},
	{name: "prio", does: "priority of operations within their class; 0 is the highest", apply: count(func(j *Job) *int { return &j.Control.Prio }, 0, 7)},
	{name: "prioclass", does: "priority class of operations: 1 realtime, 2 best effort, 3 idle", apply: count(func(j *Job) *int { return &j.Control.PrioClass }, 0, 3)},
	{name: "ignore_error", does: "errors that do not count and do not end the job, for read, write and verify", apply: setIgnoreError},
	{name: "error_dump", does: "list errors that did not end the job as notes in the report", report: true, apply: boolean(func(j *Job) *bool { return &j.Control.ErrorDump })},
	{name: "fsync_on_close", does: "flush files when they are closed, after the last operation", apply: boolean(func(j *Job) *bool { return &j.Control.FSyncOnClose })},
	{name: "end_syncfs", does: "after the last operation, flush the entire file systems of all written files, each once; block devices are flushed as with fsync_on_close",
		apply: boolean(func(j *Job) *bool { return &j.Control.EndSyncFS })},
	{name: "create_only", elsewhere: syntax.Delegate, why: "only bragg io and fio can stop after laying out the files",
		does: "only lay out the files", apply: boolean(func(j *Job) *bool { return &j.Control.CreateOnly })},
	{name: "fill_device", elsewhere: syntax.Refused, why: "it writes beyond what the plan shows",
		does: "write until no space is left, which is not an error", apply: boolean(func(j *Job) *bool { return &j.Control.FillDevice })},
	{name: "pre_read", elsewhere: syntax.Ignored, why: "it prepares the page cache, and workloads use devices",
		does: "read the files into the page cache before the start", apply: boolean(func(j *Job) *bool { return &j.Control.PreRead })},
}

const (
	whyLifecycle = "only bragg io and fio let one job end or start another"
	whySteady    = "only bragg io and fio end a job at a steady state"
)
