package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/fleet"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
	"github.com/braggdev/bragg/internal/wait"
)

// undo starts one part of undoing. It has its own deadline and a context that no stop of the run cancels.
func (l *loop) undo(item undoItem) {
	e := l.engine
	ctx, cancel := context.WithTimeout(l.base, e.cfg.UndoDeadline)
	l.cancelUndo = cancel
	if item == undoSteps {
		e.setPhase(plan.Undoing)
		e.emit(interval.Event{Kind: interval.EventPhaseStarted, Phase: string(plan.Undoing)})
		// A cleanup that takes over after a kill need not run teardown again.
		_ = e.cfg.Journal.Begin(plan.Undoing)
	}
	e.work.Go(func() {
		defer cancel()
		u := undoer{plan: &e.plan.Plan, fleet: e.fleet, nodes: e.nodes, journal: e.cfg.Journal, fail: e.cfg.fail(),
			env: func(thing control.Thing) (*verb.Env, verb.Step, error) { return e.undoEnv(thing) },
			say: func(text string) {
				e.emit(interval.Event{Kind: interval.EventLog, Phase: string(plan.Undoing), Message: text})
			}}
		if item == undoSteps {
			e.loads.Remove(ctx)
		}
		err := patient(ctx, func() error { return u.item(ctx, item) })
		if item == undoVMs {
			ev := interval.Event{Kind: interval.EventPhaseEnded, Phase: string(plan.Undoing)}
			if err != nil {
				ev.Error = err.Error()
			}
			e.emit(ev)
		}
		o := outcome{UndoDone: item}
		if err != nil {
			o.Err = err.Error()
		}
		e.post(o)
	})
}

func (e *Engine) undoEnv(thing control.Thing) (*verb.Env, verb.Step, error) {
	p := e.plan.Steps[thing.Step-1]
	p.Phase = plan.Undoing
	return e.env(p), e.plan.Bound[thing.Step-1].Step, nil
}

// undoer reverts the external changes in a journal. The engine uses it at the end of a run, Undo after a kill.
type undoer struct {
	plan    *plan.Plan // with the nodes that indexes count
	fleet   *fleet.Fleet
	nodes   *fleet.Nodes
	journal *control.Journal
	fail    control.Failpoint
	env     func(thing control.Thing) (*verb.Env, verb.Step, error)
	say     func(text string)
	// restored are nodes whose power was dealt with before; see Cleaner.Restored.
	restored map[string]error
	// partial: some nodes may not answer, so that the list of VMs may lack theirs. VMs stay in the journal then.
	partial bool
}

func (u *undoer) item(ctx context.Context, item undoItem) error {
	if err := u.fail.At("undo." + string(item)); err != nil {
		return err
	}
	switch item {
	case undoPower:
		return u.power(ctx)
	case undoSteps:
		return u.steps(ctx)
	}
	return errors.Join(u.vms(ctx), u.fail.At("undo.done"))
}

// Attempts to power a node on: a BMC that misses a command once is common.
const (
	powerAttemptsMax = 3
	powerRetryDelay  = 2 * time.Second
)

// power powers on every node that this run powered off and that was not dealt with before, all at the same time: one whose BMC is slow
// must not keep the others off.
func (u *undoer) power(ctx context.Context) error {
	var errs []error
	var indexes []int
	for _, t := range u.left(control.ThingNodeOff) {
		if _, tried := u.restored[t.Node]; tried {
			continue
		}
		index := slices.IndexFunc(u.plan.Target.Nodes, func(n target.Node) bool { return n.ID == t.Node })
		if index < 0 {
			errs = append(errs, fmt.Errorf("power on node %q: the target no longer has it", t.Node))
			continue
		}
		u.say(fmt.Sprintf("powering on node %q, which this run powered off", u.plan.Target.Nodes[index].Name))
		indexes = append(indexes, index)
	}
	errs = append(errs, target.EachOf(ctx, len(indexes), max(1, len(indexes)), func(i int) error { return u.powerNode(ctx, indexes[i]) })...)
	err := errors.Join(errs...)
	u.partial = u.partial || err != nil
	return err
}

func (u *undoer) powerNode(ctx context.Context, index int) error {
	var err error
	for attempt := range powerAttemptsMax {
		if attempt > 0 {
			if wait.For(ctx, powerRetryDelay) != nil {
				return err
			}
		}
		if err = u.nodes.On(ctx, index); err == nil || errors.Is(err, control.ErrJournalBroken) {
			return nil // powered on; a journal that cannot record this does no harm
		}
	}
	return err
}

// steps reverts the steps that are Undoers, the last first.
func (u *undoer) steps(ctx context.Context) error {
	var errs []error
	for _, t := range slices.Backward(u.left(control.ThingStep)) {
		env, step, err := u.env(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		back, ok := step.(verb.Undoer)
		if !ok {
			errs = append(errs, fmt.Errorf("take back %s: it cannot be undone", t.Call.Name))
			continue
		}
		if err := back.Undo(ctx, env); err != nil {
			errs = append(errs, fmt.Errorf("take back %s: %w", t.Call.Name, err))
			continue
		}
		_ = u.journal.Undone(t) // if the record is lost, the step is undone again
	}
	return errors.Join(errs...)
}

// vms deletes the VMs of the run.
func (u *undoer) vms(ctx context.Context) error {
	if len(u.left(control.ThingVMs)) == 0 {
		return nil
	}
	remove := u.fleet.Delete
	if u.partial {
		remove = u.fleet.Remove
	}
	err := remove(ctx)
	if errors.Is(err, control.ErrJournalBroken) {
		return nil
	}
	return err
}

func (u *undoer) left(kind control.ThingKind) []control.Thing {
	return slices.DeleteFunc(u.journal.Left(), func(t control.Thing) bool { return t.Kind != kind })
}
