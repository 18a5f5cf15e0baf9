package run

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// teardown carries out the scenario's own clean-up for a run whose controller died before it could. What fails is told
// and changes nothing for what follows: undoing does not rely on it. Loads and background work cannot begin any more.
func (c *Cleaner) teardown(ctx context.Context, u *undoer, inventory target.Inventory) {
	if c.Plan == nil {
		return
	}
	steps, problems := c.teardownSteps(inventory)
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
		p := plan.Step{ID: len(c.Plan.Steps) + i + 1, Phase: Teardown, Name: b.kind.Name, Line: b.call.Pos.Line}
		p.Group, p.Workload = b.kind.References(b.step)
		if err := c.teardownStep(ctx, u, b, p); err != nil {
			u.say(fmt.Sprintf("teardown, %s: %v", b.kind.Name, err))
			continue
		}
		u.say(fmt.Sprintf("teardown, %s: done", b.kind.Name))
	}
}

// teardownSteps binds the calls of teardown anew: a plan on disk holds no steps.
func (c *Cleaner) teardownSteps(inventory target.Inventory) ([]boundStep, diag.List) {
	// Slices of nodes count those that the plan used.
	inventory.Nodes = inventory.Nodes[:min(len(inventory.Nodes), len(c.Plan.Target.Nodes))]
	binder := &compiler{sc: c.Plan.scenario, inventory: inventory, capabilities: target.Capabilities(c.Target),
		catalog: c.Catalog, options: Options{AllowShell: c.Plan.AllowShell}, factor: 1, plan: c.Plan}
	v := binder.newView(&binder.problems)
	v.Unsure = true // what the run had deployed and started is not known
	for _, call := range binder.sc.Teardown {
		binder.bindCall(v, boundStep{call: call, phase: Teardown}, 0)
	}
	return binder.steps, binder.problems
}

func (c *Cleaner) teardownStep(ctx context.Context, u *undoer, b boundStep, p plan.Step) (err error) {
	bounded, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("defect: %v", r)
		}
	}()
	step := b.step
	if r := c.Plan.Rehearsal; r != nil {
		step = b.rebind(r.TimeFactor)
	}
	env := c.env(u, p)
	act := func() error { return step.Run(bounded, env) }
	if _, ok := step.(verb.Undoer); !ok {
		return act()
	}
	call := b.call
	return u.journal.Intend(control.Thing{Kind: control.ThingStep, Call: &call, Step: p.ID}, act)
}
