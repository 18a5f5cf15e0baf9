package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// Dry is a scenario compiled without a target.
type Dry struct {
	Faults diag.List // what Compile would refuse on any target
	Calls  []DryCall // of all phases in the order of the text; calls within a block follow its head
	// RunEnd is when the run phase ends and End when the whole run ends, from the start of setup. Both are lower bounds.
	RunEnd, End time.Duration
}

// DryCall is a call of a scenario with the properties of its step.
type DryCall struct {
	scenario.Call
	Phase    plan.Phase
	Kind     verb.Kind   // zero if the step does not exist
	Effect   verb.Effect // as far as the arguments can be read, on a target with 16 nodes
	Workload string      // that an argument names
	Groups   []string    // that arguments name, by themselves or by their workload
	Nodes    string      // that an argument names, as the scenario writes them
	Times    []DryTime   // one per execution; none if the step is wrong or was expanded
}

// DryTime is when a step begins, from the start of setup, and how long it takes at least.
type DryTime struct {
	Start, Length time.Duration
	Span          verb.Span
}

// DryCompile binds a scenario to hypothetical targets with all capabilities, and plays its steps like the estimate of a plan. It
// reports the faults that all such targets refuse. Steps whose duration depends on the target or on disk sizes take no time.
// Wrong steps do not run. In a partially read scenario, earlier steps may be missing: its calls are checked one by one, without
// windows, queries and order.
func DryCompile(sc *scenario.Scenario, catalog verb.Catalog, partial bool) Dry {
	few, many := dryBinder(sc, catalog, 3), dryBinder(sc, catalog, 250)
	for _, c := range []*binder{few, many} {
		c.bindAll(partial)
		c.checkWindows()
		c.checkQueries()
		workloads{c.script}.checkGenerators()
		c.point()
	}
	var d Dry
	for _, p := range few.problems {
		same := func(o diag.Diagnostic) bool { return o.Pos == p.Pos && o.Code == p.Code }
		if p.Severity == diag.SeverityError && !slices.Contains(targetCodes, p.Code) && slices.ContainsFunc(many.problems, same) {
			d.Faults.Add(p)
		}
	}
	d.describe(dryBinder(sc, catalog, 16))
	if few.problems.HasErrors() && !partial {
		few = dryBinder(sc, catalog, 3)
		few.bindAll(true) // so that an earlier step does not keep a step from having a time
	}
	d.time(few)
	return d
}

// dryBinder returns a binder for a target with that many nodes that can do everything.
func dryBinder(sc *scenario.Scenario, catalog verb.Catalog, nodes int) *binder {
	var capabilities []target.Capability
	for _, k := range catalog.Steps {
		capabilities = append(capabilities, k.Needs...)
	}
	inventory := dryInventory(nodes, fmt.Sprintf("target with %d nodes", nodes))
	c := newBinder(sc, inventory, capabilities, catalog, Options{AllowShell: true})
	c.dry = true
	return c
}

// describe lists the calls with the properties of their steps.
func (d *Dry) describe(c *binder) {
	var ignored diag.List
	v := c.newView(&ignored)
	for _, p := range phasesOf(c.sc) {
		for _, call := range scenario.Flatten(p.calls) {
			out := DryCall{Call: call, Phase: p.phase}
			if kind, ok := c.catalog.Kind(call.Name); ok {
				step := kind.Bind(call, 1, &verb.Problems{List: &ignored, Scenario: c.sc, Call: call})
				out.Kind, out.Effect, out.Nodes = kind, v.Effect(step), kind.NodesWritten(step)
				var group string
				group, out.Workload = kind.References(step)
				out.Groups = slices.Concat(out.Effect.Groups, []string{group})
				if w, ok := c.sc.Workload(out.Workload); ok {
					out.Groups = append(out.Groups, w.Group)
				}
			}
			d.Calls = append(d.Calls, out)
		}
	}
}

// time plays the steps and notes their times at the calls.
func (d *Dry) time(c *binder) {
	type place struct {
		at       diag.Position
		rendered int
		name     string
	}
	calls := map[place][]int{}
	for i, call := range d.Calls {
		key := place{call.Pos, call.RenderedLine, call.Name}
		calls[key] = append(calls[key], i)
	}
	var ignored diag.List
	v := c.newView(&ignored)
	times := make([]DryTime, len(c.steps))
	ran := make([]bool, len(c.steps))
	lengths := c.walk(v, 1, func(i int, step verb.Step, late bool) {
		times[i] = DryTime{Start: v.Clock, Span: v.Span(step)}
		ran[i] = !late
	})
	for i, b := range c.steps {
		if !ran[i] {
			continue
		}
		t := &times[i]
		t.Length = lengths[i]
		d.End = max(d.End, t.Start+t.Length)
		if b.phase == plan.Run {
			d.RunEnd = max(d.RunEnd, t.Start+t.Length)
		}
		for _, k := range calls[place{b.Call.Pos, b.Call.RenderedLine, b.Call.Name}] {
			d.Calls[k].Times = append(d.Calls[k].Times, *t)
		}
	}
}

func dryInventory(count int, name string) target.Inventory {
	inventory := target.Inventory{Name: name, Simulated: true, AnyTemplate: true, PowerAllowed: true, MaintenanceAllowed: true, ContainerSettingsAllowed: true, Overcommits: true}
	for _, n := range target.VirtualNodes(count) {
		n.HasBMC, n.Name = true, name+" "+n.Name
		inventory.Nodes = append(inventory.Nodes, n)
	}
	return inventory
}

// CheckOn reports faults in the calls and groups of a partially read scenario on a target.
func CheckOn(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog verb.Catalog,
	options Options) diag.List {
	c := newBinder(sc, inventory, capabilities, catalog, options)
	c.bindAll(true)
	c.point()
	return slices.DeleteFunc(c.problems, func(d diag.Diagnostic) bool { return d.Severity != diag.SeverityError })
}
