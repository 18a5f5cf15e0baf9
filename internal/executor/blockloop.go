package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
)

// repeats decides which steps of a run are too late for their repeat. Branches query it concurrently.
type repeats struct {
	mu   sync.Mutex
	pace planner.Pace
}

// skips reports whether a step belongs to an iteration that would begin too late, and logs the end of a repeat once.
func (e *Engine) skips(p plan.Step) bool {
	e.repeats.mu.Lock()
	defer e.repeats.mu.Unlock()
	b := e.plan.Bound[p.ID-1]
	over := len(e.repeats.pace.Over)
	late := e.repeats.pace.Skips(b, time.Since(e.cfg.Zero), func(r *planner.Repeat) time.Duration { return r.Planned })
	if late && len(e.repeats.pace.Over) > over {
		e.emit(interval.Event{Kind: interval.EventLog, Phase: string(p.Phase), Step: b.Within,
			Message: fmt.Sprintf("the repetition ends before iteration %s: its time is over", p.Iteration)})
	}
	return late
}

// branches returns the steps of each branch of the parallel step p.
func (e *Engine) branches(p plan.Step) [][]plan.Step {
	var out [][]plan.Step
	for _, s := range e.plan.Steps[p.ID:] {
		if s.Branch == 0 {
			break
		}
		if s.Branch > len(out) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], s)
	}
	return out
}

// runBranches runs all branches of a parallel step at once. The first that fails cancels the others; all have ended when it
// returns.
func (e *Engine) runBranches(ctx context.Context, p plan.Step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for n, steps := range e.branches(p) {
		wait.Go(func() {
			if err := e.runBranch(ctx, steps); err != nil {
				failed := fmt.Errorf("branch %d: %w", n+1, err)
				cancel(canceled{failed.Error(), failed}) // only the first counts
			}
		})
	}
	wait.Wait()
	cause := context.Cause(ctx)
	var why canceled
	if errors.As(cause, &why) && why.branch != nil {
		return why.branch
	}
	return cause
}

func (e *Engine) runBranch(ctx context.Context, steps []plan.Step) error {
	for _, s := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if e.skips(s) {
			e.progress.end(s.ID)
			continue
		}
		if err := e.runAndTell(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// runAndTell runs one step between its events.
func (e *Engine) runAndTell(ctx context.Context, p plan.Step) error {
	e.emitAt(e.stepEvent(p, interval.EventStepStarted, nil), e.border(ctx, p))
	e.progress.begin(p.ID)
	act := func() error { return e.callStep(ctx, p) }
	var err error
	if e.plan.Bound[p.ID-1].Parallel {
		err = e.runBranches(ctx, p) // each of its steps is waited for separately
	} else {
		err = patient(ctx, act)
	}
	e.progress.end(p.ID)
	ended := e.stepEvent(p, interval.EventStepEnded, err)
	if why := (canceled{}); errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &why) {
		ended.Canceled = why.why
	}
	e.emitAt(ended, e.border(context.WithoutCancel(ctx), p))
	return err
}

// border returns the time at which a step begins or ends, where intervals end if it divides the run into windows.
func (e *Engine) border(ctx context.Context, p plan.Step) time.Time {
	if p.Label == "" || p.Phase != plan.Run {
		return time.Now()
	}
	return e.loads.split(ctx)
}

// canceled is why the context of a step ended before the step did. errors.Is matches it against context.Canceled.
type canceled struct {
	why    string
	branch error // error of the parallel branch that failed
}

func (c canceled) Error() string { return "canceled: " + c.why }

func (c canceled) Is(target error) bool { return target == context.Canceled }
