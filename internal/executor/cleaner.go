package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fleet"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// Cleaner undoes the changes of a dead run.
type Cleaner struct {
	Runs    string            // the runs directory
	Target  target.Target     // nil: it could not be opened; then only power is dealt with
	Catalog verb.Catalog      // to bind Undoers and the steps of teardown again
	Plan    *planner.Plan     // of the run, read from its bundle; nil skips the scenario's own teardown
	Dir     string            // working directory of teardown programs; "" with a plan that allows none
	Say     func(text string) // may be nil
	Files   control.Files     // nil: the real file system
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
	// Restored are the nodes, by id, whose power was restored before without the target: nil says that the node answers again, an
	// error why not.
	Restored map[string]error
	// Deadline bounds each part of undoing; 0: ten minutes.
	Deadline time.Duration
}

// Undo reverts, in order, the changes of a run: it powers on the nodes that the run powered off, runs the scenario's
// teardown unless the run had reached its end, reverts what its steps did, and deletes its VMs. It never continues the
// run. It is idempotent and may be called again after any failure. The caller holds the lease of the target.
func (c *Cleaner) Undo(ctx context.Context, run string) error {
	fail := control.Failpoint(c.Failpoint)
	if err := fail.At("recover.read"); err != nil {
		return err
	}
	left, err := control.RecoverRun(c.Runs, run)
	if err != nil {
		return err
	}
	if left.Ended {
		return nil
	}
	journal, err := control.OpenJournal(c.Runs, run, c.Files, c.Failpoint)
	if err != nil {
		return err
	}
	defer journal.Close()
	dark := c.noteRestored(journal)
	if c.Target == nil {
		return fmt.Errorf("undo run %q: %w", run, cmp.Or(dark, errNoTarget))
	}
	inventory, err := c.Target.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("undo run %q: %w", run, errors.Join(dark, err))
	}
	u := c.undoer(journal, inventory)
	u.restored, u.partial = c.Restored, dark != nil
	if err := fail.At("recover.undo"); err != nil {
		return err
	}
	errs := []error{dark}
	for _, item := range []undoItem{undoPower, undoSteps, undoVMs} {
		bounded, cancel := context.WithTimeout(ctx, c.deadline())
		errs = append(errs, u.item(bounded, item))
		cancel()
		switch {
		case item != undoPower || phaseOrder(left.Phase) < 0:
		case u.partial:
			u.say("the scenario's teardown is left to the next cleaning: nodes have no power, or do not answer")
		default:
			c.teardown(ctx, u, inventory)
			_ = journal.Begin(plan.Undoing)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("undo run %q: %w", run, err)
	}
	if err := journal.End("cleaned"); err != nil {
		return err
	}
	return fail.At("recover.ended")
}

var errNoTarget = errors.New("the target cannot be opened")

// noteRestored records the nodes that answer again, and returns why others do not. If a record is lost, the node is powered on again.
func (c *Cleaner) noteRestored(journal *control.Journal) error {
	var errs []error
	for _, t := range journal.Left() {
		err, tried := c.Restored[t.Node]
		if t.Kind != control.ThingNodeOff || !tried {
			continue
		}
		if err == nil {
			_ = journal.Undone(t)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Cleaner) deadline() time.Duration {
	if c.Deadline > 0 {
		return c.Deadline
	}
	return undoDeadlineDefault
}

func (c *Cleaner) undoer(journal *control.Journal, inventory target.Inventory) *undoer {
	done := &plan.Plan{}
	if c.Plan != nil {
		known := c.Plan.Plan
		done = &known
	}
	done.Target.Nodes = inventory.Nodes // indexes count these nodes, whatever the run saw
	f := fleet.New(fleet.Config{Plan: done, Target: c.Target, Journal: journal, Failpoint: c.Failpoint,
		Runner: func(context.Context, target.VM) (load.Runner, error) { return nil, ErrStopping }})
	n := f.Nodes(inventory.Nodes)
	say := c.Say
	if say == nil {
		say = func(string) {}
	}
	u := &undoer{plan: done, fleet: f, nodes: n, journal: journal, fail: c.Failpoint, say: say}
	u.env = func(thing control.Thing) (*verb.Env, verb.Step, error) {
		kind, ok := c.Catalog.Kind(thing.Call.Name)
		if !ok {
			return nil, nil, fmt.Errorf("take back %s: there is no such step", thing.Call.Name)
		}
		if err := f.Refresh(context.Background()); err != nil {
			return nil, nil, err
		}
		step := kind.Bind(*thing.Call, 1, &verb.Problems{List: new(diag.List), Scenario: &scenario.Scenario{}, Call: *thing.Call})
		return c.env(u, plan.Step{ID: thing.Step, Phase: plan.Undoing, Name: kind.Name}), step, nil
	}
	return u
}

func (c *Cleaner) scenario() *scenario.Scenario {
	if c.Plan == nil {
		return &scenario.Scenario{}
	}
	return c.Plan.Document
}

// env is the environment of a step after the death of its run.
func (c *Cleaner) env(u *undoer, p plan.Step) *verb.Env {
	return &verb.Env{Operations: u.fleet, VMs: u.fleet, Power: u.fleet, Nodes: u.nodes, Maintenance: u.nodes.Maintain, Loads: deadLoads{u}, Notes: quietNotes{u.say}, Work: deadWork{},
		Target: c.Target, Tag: u.fleet.Tag(), Plan: u.plan, Step: p, Scenario: c.scenario(),
		Dir: c.Dir, Private: u.journal.Private()}
}

// deadLoads and deadWork refuse to start anything, because the run is over.
type deadLoads struct{ *undoer }

func (deadLoads) Start(context.Context, verb.LoadSpec) error              { return ErrStopping }
func (deadLoads) Wait(context.Context, string, bool, time.Duration) error { return ErrStopping }
func (deadLoads) Settle(context.Context, verb.Settling) error             { return ErrStopping }
func (deadLoads) Stop(context.Context, string) error                      { return nil }

// Remove does nothing: the agents that could remove what prefills made elsewhere are dead. The caller of the Cleaner reports what is left.
func (deadLoads) Remove(context.Context) {}

type deadWork struct{}

func (deadWork) Go(string, func(context.Context) error) error { return ErrStopping }

// quietNotes passes everything on as plain text.
type quietNotes struct{ say func(string) }

func (n quietNotes) Annotate(text string)         { n.say(text) }
func (n quietNotes) Log(text string)              { n.say(text) }
func (n quietNotes) Disturb(subject, text string) { n.say(subject + ": " + text) }
func (n quietNotes) Event(e interval.Event)       { n.say(e.Message) }
