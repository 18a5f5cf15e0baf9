package ioengine

import (
	"context"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
)

// Run is a prepared workload that reports how it worked.
type Run struct{ *instance }

// Prepared reports whether there is a workload; the zero value has none.
func (r Run) Prepared() bool { return r.instance != nil }

// StartAt sets when to start on the workload's axis, instead of its StartNanos.
func (r Run) StartAt(nanos int64) { r.program.Workload.StartNanos = nanos }

// ZeroAt sets the zero of the workload's axis, instead of its ZeroUnixNanos, before it runs.
func (r Run) ZeroAt(unixNanos int64) { r.program.Workload.ZeroUnixNanos = unixNanos }

// Account returns how the workload did its work. It is valid once Run has returned.
func (r Run) Account() measuring.Account {
	var sum measuring.Account
	for _, w := range r.workers() {
		sum.Add(&w.account)
	}
	return sum
}

// CheckJobs returns the errors that PrepareJobs would report, without opening anything: nil, or a *diag.ListError.
// Warnings are returned separately.
func (g Generator) CheckJobs(w load.Workload, jobs []fiojob.Job) (diag.List, error) {
	p, err := g.compile(w, jobs)
	return p.Issues, err
}

// PrepareJobs is Prepare for parsed and resolved jobs: Config, Scale, Runtime and Prefill of w are ignored.
func (g Generator) PrepareJobs(ctx context.Context, w load.Workload, jobs []fiojob.Job) (Run, error) {
	if err := ctx.Err(); err != nil {
		return Run{}, err
	}
	in, err := g.prepareJobs(w, jobs)
	return Run{in}, err
}

// TellErrors calls say for errors after which a job with error_dump continues, on the thread that drives the load. It
// must be called before Run.
func (r Run) TellErrors(say func(error)) { r.shared.say = say }
