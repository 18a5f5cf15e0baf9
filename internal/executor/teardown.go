package executor

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// teardown runs the scenario's own teardown for a run whose controller died before it could. Failures are reported and do
// not affect the steps that follow, because undoing does not depend on teardown. Loads and background work can no longer
// start.
func (c *Cleaner) teardown(ctx context.Context, u *undoer, inventory target.Inventory) {
	if c.Plan == nil {
		return
	}
	steps, problems := c.Plan.BindTeardown(inventory, target.Capabilities(c.Target), c.Catalog)
	for _, d := range problems {
		if d.Severity == diag.SeverityError {
			u.say(fmt.Sprintf("teardown, line %d is left out: %s", d.Pos.Line, d.Message))
		}
	}
	if len(steps) == 0 {
		return
	}
	if err := u.fleet.Refresh(ctx); err != nil {
		u.say(fmt.Sprintf("teardown is left out: %v", err))
		return
	}
	for i, b := range steps {
		p := plan.Step{ID: len(c.Plan.Steps) + i + 1, Phase: plan.Teardown, Name: b.Kind.Name, Line: b.Call.Pos.Line}
		p.Group, p.Workload = b.Kind.References(b.Step)
		if err := c.teardownStep(ctx, u, b, p); err != nil {
			u.say(fmt.Sprintf("teardown, %s: %v", b.Kind.Name, err))
			continue
		}
		u.say(fmt.Sprintf("teardown, %s: done", b.Kind.Name))
	}
}

func (c *Cleaner) teardownStep(ctx context.Context, u *undoer, b planner.Bound, p plan.Step) (err error) {
	bounded, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("defect: %v", r)
		}
	}()
	step := b.Step
	if r := c.Plan.Rehearsal; r != nil {
		step = b.Rebind(r.TimeFactor)
	}
	env := c.env(u, p)
	act := func() error { return step.Run(bounded, env) }
	if _, ok := step.(verb.Undoer); !ok {
		return act()
	}
	call := b.Call
	return u.journal.Intend(control.Thing{Kind: control.ThingStep, Call: &call, Step: p.ID}, act)
}
