package fio

import (
	"fmt"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// recorder turns documents into intervals and passes them to the sink.
type recorder struct {
	axis     program.Axis
	workload load.Workload
	compiled *compiled
	meter    *meter
	sink     load.Sink

	sequence int64
	end      int64 // of the last interval, on the axis
	held     *arrival
	heldCPU  time.Duration
	cpuLast  time.Duration
	cpuTotal time.Duration
	effort   interval.Effort // since the last interval
	any      bool            // a document was received
	loaded   bool            // an operation completed
	began    int64           // first operation, on the axis
	last     document
}

func (r *recorder) begin(at int64) { r.end = at }

// hold delays a document briefly, because the last document of a run comes shortly after another one or before the end of
// the output.
func (r *recorder) hold(a arrival, cpu time.Duration) {
	if r.held != nil && a.at.Sub(r.held.at) > intervalOf(r.workload)/4 {
		r.release(false)
	}
	r.held, r.any, r.last = &a, true, a.document
	if cpu > 0 {
		r.heldCPU = cpu
	}
}

// release delivers the delayed document.
func (r *recorder) release(final bool) {
	if r.held == nil {
		return
	}
	a := *r.held
	r.held = nil
	end := madeAt(r.axis, a)
	millis, any := a.document.started()
	if any && !r.loaded {
		// fio takes a while to start; the load began at the time that it reports.
		r.loaded, r.began = true, end-millis*int64(time.Millisecond)
		if r.sequence == 0 {
			r.end = max(r.end, r.began)
		}
	}
	if over := r.began + millis*int64(time.Millisecond); final && any && r.compiled.parallel && over > r.end {
		end = min(end, over) // closing files and printing are not part of the load
	}
	iv := r.meter.take(a.document)
	r.deliver(iv, end, final)
}

func (r *recorder) cpu(total time.Duration) { r.cpuTotal = max(total, r.heldCPU) }

func (r *recorder) deliver(iv interval.Interval, end int64, final bool) {
	end = max(end, r.end+1)
	cpu := r.heldCPU
	if final {
		cpu = max(cpu, r.cpuTotal)
	}
	w := r.workload
	iv.Workload, iv.Group, iv.VM, iv.Instance, iv.Prefill = w.Name, w.Group, w.VM, w.Instance, w.Prefill
	iv.Sequence, iv.StartNanos, iv.LengthNanos, iv.Final = r.sequence, r.end, end-r.end, final
	iv.CPUNanos = int64(max(0, cpu-r.cpuLast))
	r.cpuLast = max(cpu, r.cpuLast)
	iv.Effort, r.effort = r.effort, interval.Effort{}
	iv.BusiestNanos, iv.WaitedNanos = min(iv.BusiestNanos, iv.LengthNanos), min(iv.WaitedNanos, iv.LengthNanos)
	r.sequence++
	r.end = end
	r.sink.Interval(iv)
}

// finish delivers the final interval: the held document, or an empty one.
func (r *recorder) finish(at int64) {
	if r.held != nil {
		r.release(true)
		return
	}
	r.deliver(interval.Interval{}, at, true)
}

// failed returns an error if a job ended early because an operation failed.
func (r *recorder) failed(said *program.Tail) error {
	for i, e := range r.last.Groups {
		if e.Error != 0 && i < len(r.meter.groups) && r.meter.groups[i].errors == "none" {
			return fmt.Errorf("job %q ended: %w%s", r.meter.groups[i].name, syscall.Errno(e.Error), said.Quoted())
		}
	}
	return nil
}
