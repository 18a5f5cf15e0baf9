package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/wait"
)

// A load whose scenario says so starts again on a VM that was lost and came back: restarted by the platform on another node, or
// powered on by a step. It runs there for the rest of its runtime, as the same start of the load, so that the loss is a gap in its
// series.

const (
	reachAgain = 2 * time.Second // between attempts to reach a lost VM
	// restartMin is the shortest rest of a runtime for which a load is started again.
	restartMin = time.Second
)

// comeback is a load on one VM that may start again.
type comeback struct {
	loads  *loads
	run    *loadRun
	member *member
	w      plan.Workload
}

// follow starts the load again on its VM, as often as that is lost and comes back before the end of the runtime.
func (c comeback) follow(ctx context.Context) {
	m, name := c.member, c.run.spec.Workload
	for c.run.spec.Restart && c.w.Servers == nil && ctx.Err() == nil && errors.Is(m.err, load.ErrLost) {
		lost := time.Now()
		c.note(fmt.Sprintf("%s ended on %s, which was lost; it starts again when the VM answers", name, m.vm.Name))
		again, cuts := c.reach(ctx)
		if again == nil {
			return
		}
		m.runner, m.cuts = again, cuts
		c.note(fmt.Sprintf("%s runs on %s again, %s after the loss was noticed", name, m.vm.Name, unit.FormatDuration(time.Since(lost))))
		m.err = c.runRest(ctx)
	}
}

// reach waits until the agent of the lost VM answers, and returns nil if it does not while there is runtime left.
func (c comeback) reach(ctx context.Context) (load.Runner, int) {
	e, m := c.loads.engine, c.member
	bounded, cancel := context.WithDeadline(ctx, m.ends(c.run).Add(-restartMin))
	defer cancel()
	for wait.For(bounded, reachAgain) == nil {
		cuts := e.fleet.PowerCutsOf(m.vm.Name)
		for _, vm := range e.fleet.Of(m.vm.Group) {
			if vm.Name == m.vm.Name {
				m.vm = vm // it may be on another node
			}
		}
		if runner, err := e.cfg.Runner(bounded, m.vm); err == nil {
			return runner, cuts
		}
	}
	return nil, 0
}

// runRest runs the load for the rest of its runtime.
func (c comeback) runRest(ctx context.Context) error {
	l, m := c.loads, c.member
	v := l.value(c.run, m, c.w)
	v.Runtime = c.run.lasting.Longest(time.Until(m.ends(c.run)))
	held, err := hold(ctx, m.runner, v, watchedSink{l.engine.cfg.Intervals, c.run.pace.add})
	if err != nil {
		return err
	}
	l.mu.Lock()
	m.held = held // windows of steps split its intervals
	l.mu.Unlock()
	return l.runHeld(ctx, c.run, m, time.Now())
}

func (c comeback) note(text string) {
	e := c.loads.event(c.run, interval.EventAnnotation)
	e.Subject, e.Message = c.member.vm.Name, text
	c.loads.engine.emit(e)
}
