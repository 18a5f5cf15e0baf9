package iojob

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// Jobs affect each other in two ways: one waits until another has ended (wait_for), and the end of one ends others
// (exitall). Ending a clone that way is not an error.

// lifecycle is how clones of a run end each other.
type lifecycle struct {
	mu   sync.Mutex
	over bool // exit_what=all: no further phase begins
}

// course is the state of one clone in its phase.
type course struct {
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{} // closed when it has ended, or will never begin
}

// checkWaits refuses a job that waits for one that does not precede it.
func checkWaits(jobs []fiojob.Job) error {
	at, problem := fiojob.CheckWaits(jobs)
	if problem == "" {
		return nil
	}
	var list diag.List
	list.Add(diag.Diagnostic{Code: "wait-for", Pos: jobs[at].Pos, Message: problem, Hint: "put the job that is waited for above it"})
	return list.Err()
}

// runClones runs prepared clones of one phase, from start or from the end of the clones that they wait for.
func (r *runner) runClones(ctx context.Context, clones []*clone, prepared []ioengine.Run, start time.Duration) {
	for _, c := range clones {
		c.course.ctx, c.course.stop = context.WithCancel(ctx)
	}
	var wait sync.WaitGroup
	for i, c := range clones {
		if !prepared[i].Prepared() {
			close(c.course.done)
			r.ended(c, clones)
			continue
		}
		wait.Go(func() {
			defer c.course.stop()
			r.runClone(c, prepared[i], start)
			close(c.course.done)
			r.ended(c, clones)
		})
	}
	wait.Wait()
}

// control configures the engine's run of a clone.
func (r *runner) control(c *clone, run ioengine.Run) {
	run.DropBacklog(r.options.DropAfter)
	run.ForgetSearch()
	run.ShareRamps(&r.ramps)
	run.ShareFlows(&r.flows, c.job.Control.WaitFor != "")
	run.TellErrors(func(err error) { r.options.say("%v", err) })
}

func (r *runner) runClone(c *clone, run ioengine.Run, start time.Duration) {
	for _, other := range r.clones[:c.number] {
		if c.job.Control.WaitFor == "" || other.job.Name != c.job.Control.WaitFor {
			continue
		}
		select {
		case <-other.course.done:
		case <-c.course.ctx.Done():
		}
		start = max(start, r.axis.now()+StartDelay)
	}
	if c.course.ctx.Err() != nil {
		_ = run.Close() // nothing was written
		r.finish(c)
		return
	}
	run.StartAt(int64(start))
	c.begin(int64(start), &c.job, run.Engine().String())
	err := run.Run(c.course.ctx, load.SinkFunc(func(iv interval.Interval) {
		c.foundDepth(run)
		c.foundRamp(run, iv.EndNanos())
		r.deliver(c, &iv)
		c.judge.add(c, &iv)
	}))
	c.foundDepth(run)
	c.foundRamp(run, int64(r.axis.now()))
	if unsaved := c.saveState(&r.options, run, c.course.ctx.Err() != nil); unsaved != nil {
		err = errors.Join(err, unsaved)
	}
	account := run.Account()
	r.options.sayMismatches(c.job.Name, &account)
	c.end(r.axis.now(), account, err)
	r.endOutputs(c, account.EndNanos)
	c.judge.leave(c)
}

// ended ends the clones that exitall of a clone ends.
func (r *runner) ended(c *clone, phase []*clone) {
	endComputing(phase)
	control := &c.job.Control
	if !control.ExitAll && !(control.ExitAllOnError && c.failed()) {
		return
	}
	if control.ExitWhat == "all" {
		r.lifecycle.mu.Lock()
		r.lifecycle.over = true
		r.lifecycle.mu.Unlock()
	}
	whole := control.ExitWhat == "all" || control.ExitWhat == "stonewall"
	for _, other := range phase {
		if other != c && (whole || other.job.Group == c.job.Group) {
			other.course.stop()
		}
	}
}

// endComputing ends jobs that only compute once all others of the phase have ended, if they request it.
func endComputing(phase []*clone) {
	for _, c := range phase {
		if c.job.IOEngine == "cpuio" {
			continue
		}
		select {
		case <-c.course.done:
		default:
			return
		}
	}
	for _, c := range phase {
		if c.job.IOEngine == "cpuio" && c.job.Control.CPU.ExitOnIODone {
			c.course.stop()
		}
	}
}

// isOver reports whether a clone's end has ended the run.
func (l *lifecycle) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// settle resolves the settings of a job that differ between its clones.
func (c *clone) settle(j *fiojob.Job) {
	control := &j.Control
	if control.StartDelayMax > j.StartDelay {
		key := load.Key(j.RandSeed, uint64(c.number))
		j.StartDelay += time.Duration(load.DrawBelow(key, 0, uint64(control.StartDelayMax-j.StartDelay)+1))
	}
	control.StartDelayMax = 0
	if n := len(control.CPUs); n > 0 && control.CPUsSplit {
		control.CPUs, control.CPUsSplit = control.CPUs[c.index%n:][:1], false
	}
}
