package fiojob

import (
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// CPULoad is the load of a job with ioengine=cpuio.
type CPULoad struct {
	Percent      int           // of one CPU
	Chunk        time.Duration // computing time between two pauses; 0: 50 ms
	Sort         bool          // it sorts numbers instead of only reading the clock
	ExitOnIODone bool          // it ends when all other jobs have ended
}

const whyCPU = "only bragg io and fio support jobs that use the CPU and do no I/O"

var cpuLoad = []spec{
	{name: "cpuload", elsewhere: syntax.Delegate, why: whyCPU, does: "with cpuio: load on one CPU, in percent",
		apply: count(func(j *Job) *int { return &j.Control.CPU.Percent }, 0, 100)},
	{name: "cpuchunks", elsewhere: syntax.Delegate, why: whyCPU, does: "with cpuio: microseconds of computing between two pauses",
		apply: micros(func(j *Job) *time.Duration { return &j.Control.CPU.Chunk })},
	{name: "cpumode", elsewhere: syntax.Delegate, why: whyCPU, does: "with cpuio: noop, which only consumes time, or qsort, which sorts",
		apply: word(func(j *Job) *bool { return &j.Control.CPU.Sort }, "qsort", "noop", "qsort")},
	{name: "exit_on_io_done", elsewhere: syntax.Delegate, why: whyCPU, does: "with cpuio: end when all other jobs have ended",
		apply: boolean(func(j *Job) *bool { return &j.Control.CPU.ExitOnIODone })},
}

// micros reads a plain number of microseconds.
func micros(field func(*Job) *time.Duration) apply {
	return func(j *Job, a *arg) {
		var n int
		count(func(*Job) *int { return &n }, 0, 1<<31-1)(j, a)
		*field(j) = time.Duration(n) * time.Microsecond
	}
}
