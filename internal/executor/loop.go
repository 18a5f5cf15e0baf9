package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/verb"
)

// Run executes the plan: setup, run, teardown, undo. It blocks until all work of the run has ended. A canceled ctx stops the run
// like Stop(StopAndUndo); undo is not affected by ctx. The error is nil even for a failed run: the Outcome has its failure.
func (e *Engine) Run(ctx context.Context) (Outcome, error) {
	base := context.WithoutCancel(ctx)
	e.background, e.stopBackground = context.WithCancel(base)
	defer func() { e.stopBackground() }()
	e.emit(interval.Event{Kind: interval.EventRunStarted, Message: e.plan.Scenario.DisplayName})
	l := &loop{engine: e, base: base, state: e.initialState()}
	var watched context.Context
	watched, l.stopWatch = context.WithCancel(base)
	defer l.stopWatch()
	e.work.Go(func() { e.fleet.Watch(watched) })
	l.turn(outcome{Start: true})
	if err := e.cfg.fail().At("run.start"); err != nil {
		l.turn(outcome{Guard: err.Error()})
	}
	stop := ctx.Done()
	for l.state.Stage != stageEnded {
		select {
		case o := <-e.outcomes:
			l.turn(o)
		case <-stop:
			stop = nil
			l.turn(outcome{Stop: int(StopAndUndo)})
		case <-l.grace:
			l.turn(outcome{Grace: true})
		}
	}
	close(e.finished)
	l.stopWatch()
	e.settle(l.state.GaveUp || l.state.StopLevel >= int(StopOnly))
	return l.outcome(), nil
}

// settle waits for all goroutines; when some were given up, or the user is impatient, at most for the grace.
func (e *Engine) settle(impatient bool) {
	done := make(chan struct{})
	go func() {
		e.work.Wait()
		close(done)
	}()
	if !impatient {
		<-done
		return
	}
	select {
	case <-done:
	case <-time.After(graceLength):
	}
}

func (e *Engine) initialState() state {
	s := state{Stage: stageIdle}
	for _, p := range e.plan.Steps {
		if p.Branch > 0 {
			continue // the head of its branches runs it
		}
		s.steps = append(s.steps, stepRef{ID: p.ID, Phase: p.Phase, Name: p.Name})
	}
	return s
}

// loop owns the state. Its fields are touched by the goroutine of Run only.
type loop struct {
	engine     *Engine
	base       context.Context // never cancelled
	state      state
	cancelStep context.CancelCauseFunc
	cancelUndo context.CancelFunc
	stopWatch  context.CancelFunc // of placement
	grace      <-chan time.Time
}

// turn passes one outcome to the machine and performs the resulting actions.
func (l *loop) turn(o outcome) {
	next, actions := l.state.next(o)
	l.state = next
	for _, a := range actions {
		l.perform(a)
	}
}

func (l *loop) perform(a action) {
	e := l.engine
	switch a.Kind {
	case actBeginPhase:
		l.beginPhase(a.Phase)
	case actEndPhase:
		e.emit(interval.Event{Kind: interval.EventPhaseEnded, Phase: string(a.Phase), Error: a.Err})
	case actRunStep:
		l.runStep(a.Step)
	case actCancelStep:
		l.cancelStep(canceled{why: a.Err})
	case actGrant:
		a.reply <- a.Handle
	case actRefuse:
		a.reply <- 0
	case actStopBackground:
		e.stopBackground()
	case actUndo:
		l.undo(a.Undo)
	case actCancelUndo:
		l.cancelUndo()
	case actStartGrace:
		l.grace = time.After(graceLength)
	case actAbandoned:
		_ = e.cfg.Journal.Abandon() // if this fails, open entries stay open anyway
	case actFinish:
		l.finish()
	}
}

func (l *loop) beginPhase(p plan.Phase) {
	e := l.engine
	e.setPhase(p)
	if p == plan.Teardown {
		l.stopWatch()
		// Loads of setup and run have ended; teardown may start its own.
		e.stopBackground()
		e.background, e.stopBackground = context.WithCancel(l.base)
	}
	e.emit(interval.Event{Kind: interval.EventPhaseStarted, Phase: string(p)})
	err := e.cfg.Journal.Begin(p)
	if err == nil {
		err = e.cfg.fail().At("phase." + string(p))
	}
	if err != nil && p != plan.Teardown {
		l.report(outcome{Journal: true, Err: err.Error()})
	}
}

// report posts an outcome from within a turn.
func (l *loop) report(o outcome) { l.engine.work.Go(func() { l.engine.post(o) }) }

func (l *loop) runStep(id int) {
	e := l.engine
	p := e.plan.Steps[id-1]
	ctx, cancel := l.base, context.CancelFunc(func() {})
	if p.Phase == plan.Teardown {
		ctx, cancel = context.WithTimeout(l.base, p.Duration+e.cfg.TeardownDeadline)
	}
	ctx, done := context.WithCancelCause(ctx)
	l.cancelStep = done
	late := e.skips(p)
	e.work.Go(func() {
		defer cancel()
		defer done(nil)
		o := outcome{StepDone: id}
		var err error
		if late {
			e.progress.end(id)
		} else {
			err = e.runAndTell(ctx, p)
		}
		if err != nil {
			o.Err, o.Refused = diag.Sentence(err), diag.ExitCode(err) == diag.ExitRefused
		}
		e.post(o)
		if errors.Is(err, control.ErrJournalBroken) {
			e.post(outcome{Journal: true, Err: err.Error()})
		}
	})
}

// patient runs act and, once ctx has ended, gives it the grace to return. A step that hangs must not keep the run from
// undoing; its goroutine is given up.
func patient(ctx context.Context, act func() error) error {
	done := make(chan error, 1)
	go func() { done <- act() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(graceLength):
		return fmt.Errorf("did not return within %v after it was cancelled: %w", graceLength, context.Cause(ctx))
	}
}

// callStep runs one step. A panic in a step is a bug, but the undo must still happen, so the panic becomes an error.
func (e *Engine) callStep(ctx context.Context, p plan.Step) (err error) {
	env := e.env(p)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("defect in step %s: %v", p.Name, r)
			env.Notes.Log(fmt.Sprintf("%v\n%s", r, debug.Stack()))
		}
	}()
	if err := e.cfg.fail().At("step.before"); err != nil {
		return err
	}
	b := e.plan.Bound[p.ID-1]
	if _, ok := b.Step.(verb.Undoer); ok {
		call := b.Call
		thing := control.Thing{Kind: control.ThingStep, Call: &call, Step: p.ID}
		err = e.cfg.Journal.Intend(thing, func() error { return b.Step.Run(ctx, env) })
	} else {
		err = b.Step.Run(ctx, env)
	}
	if err != nil {
		return err
	}
	return e.cfg.fail().At("step.after")
}

func (e *Engine) env(p plan.Step) *verb.Env {
	return &verb.Env{Operations: e.fleet, VMs: e.fleet, Power: e.fleet, Nodes: e.nodes, Maintenance: e.nodes.Maintain, Loads: stepLoads{e.loads, p.Lasting}, Notes: notes{engine: e, step: p},
		Work: &work{engine: e}, Target: e.cfg.Target, Tag: e.fleet.Tag(), Plan: &e.plan.Plan, Step: p, Scenario: e.plan.Document, Dir: e.cfg.Dir,
		Private: e.cfg.Journal.Private(), Mask: e.cfg.Mask, Logs: e.cfg.Collect}
}

func (e *Engine) stepEvent(p plan.Step, kind interval.EventKind, err error) interval.Event {
	ev := interval.Event{Kind: kind, Phase: string(p.Phase), Step: p.Name, StepID: p.ID, Workload: p.Workload,
		Group: p.Group, Message: p.Subject, Iteration: p.Iteration, Label: p.Label, Simulate: p.Simulates != ""}
	if p.Nodes {
		ev.Subject = p.Subject
	}
	if err != nil {
		ev.Error = diag.Sentence(err)
	}
	return ev
}

func (l *loop) finish() {
	e := l.engine
	_ = e.cfg.fail().At("run.end")
	if len(e.cfg.Journal.Left()) == 0 {
		if err := e.cfg.Journal.End(l.state.Ended); err != nil {
			l.state.Problems = append(l.state.Problems, "journal: "+err.Error())
		}
	}
	e.emit(interval.Event{Kind: interval.EventRunEnded, Message: l.state.Ended, Error: l.state.Reason})
	_ = e.cfg.fail().At("run.ended")
}

func (l *loop) outcome() Outcome {
	s := l.state
	return Outcome{Ended: s.Ended, Reason: s.Reason, Refused: s.Refused, Problems: s.Problems, Left: l.engine.cfg.Journal.Left()}
}

// work is background work of steps.
type work struct{ engine *Engine }

func (w *work) Go(name string, act func(ctx context.Context) error) error {
	e := w.engine
	if err := e.cfg.fail().At("background.start"); err != nil {
		return err
	}
	handle := e.want(name)
	if handle == 0 {
		return fmt.Errorf("start %s: %w", name, ErrStopping)
	}
	ctx := e.background
	e.work.Go(func() {
		err := act(ctx)
		if err == nil {
			err = e.cfg.fail().At("background.ended")
		}
		o := outcome{Finished: handle}
		if err != nil && ctx.Err() == nil {
			o.Err = fmt.Sprintf("%s: %v", name, err)
		}
		e.post(o)
	})
	return nil
}
