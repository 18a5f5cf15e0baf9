package fiojob

import (
	"math"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// nativeControl lists the options of Control. Those with a different class in workloads are native where whole job files
// run on files that the reader creates (Options.Host).
var nativeControl = []spec{
	{name: "exitall", does: "the end of this job ends the others of exit_what", elsewhere: syntax.Delegate, why: whyLifecycle, apply: flag(func(j *Job) *bool { return &j.Control.ExitAll })},
	{name: "exitall_on_error", does: "an error of this job ends the others of exit_what", elsewhere: syntax.Delegate, why: whyLifecycle,
		apply: flag(func(j *Job) *bool { return &j.Control.ExitAllOnError })},
	{name: "exit_what", does: "what exitall ends: the reporting group, all up to the next stonewall, or everything", elsewhere: syntax.Delegate, why: whyLifecycle,
		apply: choice(func(j *Job) *string { return &j.Control.ExitWhat }, []string{"group", "stonewall", "all"}, nil)},
	{name: "wait_for", does: "start when all clones of that earlier job have ended", elsewhere: syntax.Delegate, why: whyLifecycle, apply: textOf(func(j *Job) *string { return &j.Control.WaitFor })},
	{name: "steadystate", does: "end the job when IOPS, bandwidth or mean latency has settled within a limit", elsewhere: syntax.Delegate, why: whySteady, apply: setSteadyState},
	{name: "steadystate_duration", does: "window in which it must have settled", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.Duration }, time.Second)},
	{name: "steadystate_ramp_time", does: "time before the window begins", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.RampTime }, time.Second)},
	{name: "steadystate_check_interval", does: "distance of the values that are compared", elsewhere: syntax.Delegate, why: whySteady,
		apply: duration(func(j *Job) *time.Duration { return &j.Control.SteadyState.CheckInterval }, time.Second)},

	{name: "latency_target", does: "search for the deepest queue at which latency stays below this", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyTarget }, time.Microsecond)},
	{name: "latency_window", does: "how long each depth is tried", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyWindow }, time.Microsecond)},
	{name: "latency_percentile", does: "share of operations that must meet the target", apply: setPercentile},
	{name: "latency_run", does: "go on to the end at the depth that was found, and adapt it", apply: boolean(func(j *Job) *bool { return &j.Control.LatencyRun })},
	{name: "max_latency", does: "a slower operation ends the job with an error", apply: duration(func(j *Job) *time.Duration { return &j.Control.LatencyMax }, time.Microsecond)},
	{name: "rate_min", does: "bytes a second below which a job ends with an error, by direction", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.Control.RateMin }, 0, math.MaxInt64)},
	{name: "rate_iops_min", does: "operations a second below which a job ends with an error, by direction", apply: countTriple(0, math.MaxInt32, func(j *Job, d Direction, v int64) {
		j.Control.RateIOPSMin[d] = v
	})},
	{name: "rate_cycle", does: "milliseconds over which rate_min and rate_iops_min are kept", apply: millis(func(j *Job) *time.Duration { return &j.Control.RateCycle }, 1)},
	{name: "rate_ignore_thinktime", does: "no effect on a schedule, which thinking time never moves", apply: boolean(func(j *Job) *bool { return &j.Control.RateIgnoreThink })},

	{name: "thinktime_spin", does: "part of the pause that is spent computing", apply: duration(func(j *Job) *time.Duration { return &j.Control.ThinkTimeSpin }, time.Microsecond)},
	{name: "thinktime_iotime", does: "operations go on for so long between two pauses", apply: duration(func(j *Job) *time.Duration { return &j.Control.ThinkTimeIOTime }, time.Second)},
	{name: "thinktime_blocks_type", does: "whether thinktime_blocks counts what was issued or completed; the pause waits for what is in flight either way", apply: word(func(j *Job) *bool { return &j.Control.ThinkTimeIssue }, "issue", "complete", "issue")},

	{name: "cpus_allowed", does: "CPUs that the threads of the job may run on", apply: setCPUs},
	{name: "cpumask", does: "the same as the bits of a number", apply: setCPUMask},
	{name: "cpus_allowed_policy", does: "shared: all clones on all of them; split: one for each clone in turn", apply: word(func(j *Job) *bool { return &j.Control.CPUsSplit }, "split", "shared", "split")},
	{name: "nice", does: "priority of the threads of the job", apply: count(func(j *Job) *int { return &j.Control.Nice }, -20, 19)},
	{name: "prio", does: "priority of operations within their class, 0 is the highest", apply: count(func(j *Job) *int { return &j.Control.Prio }, 0, 7)},
	{name: "prioclass", does: "class of priority: 1 realtime, 2 best effort, 3 idle", apply: count(func(j *Job) *int { return &j.Control.PrioClass }, 0, 3)},
	{name: "ignore_error", does: "errors that are neither counted nor end the job, for read, write and verify", apply: setIgnoreError},
	{name: "error_dump", does: "errors that a job outlives are notes of the report", report: true, apply: boolean(func(j *Job) *bool { return &j.Control.ErrorDump })},
	{name: "fsync_on_close", does: "flush files when they are closed, after the last operation", apply: boolean(func(j *Job) *bool { return &j.Control.FSyncOnClose })},
	{name: "end_syncfs", does: "flush the whole file systems of files that were written, each once, after the last operation; block devices are flushed as with fsync_on_close",
		apply: boolean(func(j *Job) *bool { return &j.Control.EndSyncFS })},
	{name: "create_only", elsewhere: syntax.Delegate, why: "only bragg io and fio stop after they have laid out the files",
		does: "lay out the files and do nothing else", apply: boolean(func(j *Job) *bool { return &j.Control.CreateOnly })},
	{name: "fill_device", elsewhere: syntax.Refused, why: "it writes past what the plan shows",
		does: "write until no space is left, which is not an error", apply: boolean(func(j *Job) *bool { return &j.Control.FillDevice })},
	{name: "pre_read", elsewhere: syntax.Ignored, why: "it prepares the page cache, and workloads use devices",
		does: "read the files into the page cache before the start", apply: boolean(func(j *Job) *bool { return &j.Control.PreRead })},
}

const (
	whyLifecycle = "only bragg io and fio let one job end or start another"
	whySteady    = "only bragg io and fio end a job at a steady state"
)
