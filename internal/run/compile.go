package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Refusal is what Compile returns when there is no plan: all diagnostics, and the exit code that suits them. It unwraps
// to *diag.ListError.
type Refusal struct {
	*diag.ListError
	exit int
}

// ExitCode is diag.ExitData when the scenario has errors, diag.ExitRefused when its target does not allow to switch nodes, and
// else diag.ExitUnavailable.
func (r *Refusal) ExitCode() int { return r.exit }

// Unwrap returns the list.
func (r *Refusal) Unwrap() error { return r.ListError }

const codePowerNotAllowed = "power-not-allowed"

// targetCodes are the codes of diagnostics where the scenario is right and the target is wrong.
var targetCodes = []string{"lacks-capability", codePowerNotAllowed, "shell-not-allowed", "node-range", "lacks-template"}

// boundStep is a call with its kind and a factory, so that it can be bound again with another time factor.
type boundStep struct {
	kind   Kind
	call   scenario.Call
	phase  Phase
	within string
	step   Step

	expanded  bool   // a step that was expanded stands for it in the scenario
	parallel  bool   // the head of branches, which stand behind it
	branch    int    // from 1, of the head before; 0: it is in none
	iteration string // of the repetitions around it, outermost first: "2", "2.1"
	turns     []turn // in repetitions that last for a time, outermost first
}

// compiler holds what one Compile works on.
type compiler struct {
	sc           *scenario.Scenario
	inventory    target.Inventory
	nodes        []target.Node // all of the target; a rehearsal uses fewer
	capabilities []target.Capability
	catalog      Catalog
	options      Options
	problems     diag.List
	steps        []boundStep
	plan         *Plan
	factor       float64          // time factor, 1 in a full run
	lasting      map[int]*lasting // of a rehearsal, by index of the step that starts the load

	// acts are what the run phase does, actsOfNodes that the target decides on some, actsUnknown that a step could not be named.
	acts                     []act
	actsOfNodes, actsUnknown bool
	imagined                 bool // there is no target
}

// Compile binds the scenario to a target. It reports everything that is wrong at once, as a *Refusal, and touches
// nothing. capabilities are those of target.Capabilities, fewer when the user forbids some.
func Compile(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog Catalog,
	options Options) (*Plan, error) {
	c := newCompiler(sc, inventory, capabilities, catalog, options)
	if len(c.inventory.Nodes) == 0 {
		return nil, &diag.Error{Code: "no-nodes", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("target %q has no node", inventory.Name)}
	}
	c.bindAll(false)
	c.checkWindows()
	c.checkQueries()
	c.chooseGenerators()
	if err := c.refusal(); err != nil {
		return nil, err
	}
	c.planGroups()
	c.planWorkloads()
	if err := c.refusal(); err != nil {
		return nil, err
	}
	c.chooseTimes()
	c.listWorkloads()
	c.finish()
	if err := c.refusal(); err != nil {
		return nil, err
	}
	return c.plan, nil
}

func newCompiler(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog Catalog,
	options Options) *compiler {
	c := &compiler{sc: sc, inventory: inventory, nodes: inventory.Nodes, capabilities: capabilities, catalog: catalog, options: options,
		factor: 1}
	if options.Rehearse > 0 && len(inventory.Nodes) > rehearsalNodesMax {
		c.inventory.Nodes = slices.Clone(inventory.Nodes[:rehearsalNodesMax])
	}
	c.plan = c.newPlan()
	return c
}

func (c *compiler) newPlan() *Plan {
	sc, inv := c.sc, c.inventory
	return &Plan{Plan: plan.Plan{
		Format: plan.Format,
		Scenario: plan.Scenario{Name: sc.Name, DisplayName: sc.DisplayName, Hash: sc.Hash,
			Preset: sc.Preset},
		Target: plan.Target{Provider: inv.Provider, Name: inv.Name, Simulated: inv.Simulated, Nodes: inv.Nodes,
			FreeBytes: inv.FreeBytes, TotalBytes: inv.TotalBytes, Hypervisor: inv.Hypervisor, RestartsElsewhere: inv.RestartsElsewhere,
			RestartsWithNode: inv.RestartsWithNode},
		Seed: c.options.Seed, AllowShell: c.options.AllowShell,
		Windows: []string{}, Power: []plan.PowerOperation{}, Undo: []string{}, Unfit: []plan.Unfit{}, Notes: []string{}, Warnings: diag.List{},
		Groups: []plan.Group{}, Workloads: []plan.Workload{}, Steps: []plan.Step{}},
		workloads: map[string]*workloadPlan{}, inventory: inv, scenario: sc,
	}
}

// refusal returns the problems found so far as an error, with the user's own lines filled in.
func (c *compiler) refusal() error {
	c.point()
	if !c.problems.HasErrors() {
		return nil
	}
	var list *diag.ListError
	errors.As(c.problems.Err(), &list)
	return &Refusal{ListError: list, exit: exitOf(c.problems)}
}

// exitOf returns the exit code for problems of which one at least is an error.
func exitOf(problems diag.List) int {
	exit := diag.ExitUnavailable
	for _, d := range problems {
		switch {
		case d.Severity != diag.SeverityError:
		case !slices.Contains(targetCodes, d.Code):
			return diag.ExitData
		case d.Code == codePowerNotAllowed:
			exit = diag.ExitRefused
		}
	}
	return exit
}

// point fills in the user's own lines.
func (c *compiler) point() {
	for i, d := range c.problems {
		if used := len(c.inventory.Nodes); d.Code == "node-range" && d.Hint == "" && used < len(c.nodes) {
			c.problems[i].Hint = fmt.Sprintf("a rehearsal uses the first %d of the target's %d nodes", used, len(c.nodes))
			d = c.problems[i]
		}
		if d.Source == "" && d.Pos.File == c.sc.Document {
			c.problems[i] = c.sc.Point(d, 0)
		}
	}
}

// newView returns the state before the first step: groups placed, nothing deployed, no load.
func (c *compiler) newView(problems *diag.List) *View {
	v := &View{Scenario: c.sc, Inventory: c.inventory, AllowShell: c.options.AllowShell,
		groups: map[string]*groupState{}, loads: map[string]loadState{}, sizes: map[string]loadSize{},
		scaled: map[string]map[int]int{}, factor: c.factor}
	for _, g := range c.plan.Groups {
		v.scaled[g.Name] = g.Counts
	}
	for _, g := range c.sc.Groups {
		v.groups[g.Name] = placeGroup(g, len(c.inventory.Nodes), problems)
	}
	return v
}

// bindAll binds, checks and expands every call, in order, while it plays their effects on groups and loads. Of a
// scenario that was read in part, calls may be missing.
func (c *compiler) bindAll(partial bool) {
	v := c.newView(&c.problems)
	v.unsure, c.actsUnknown = partial, partial
	c.checkTemplates()
	for _, p := range phasesOf(c.sc) {
		for _, call := range p.calls {
			c.bindCall(v, boundStep{call: call, phase: p.phase}, 0)
		}
	}
}

type phaseCalls struct {
	phase Phase
	calls []scenario.Call
}

func phasesOf(sc *scenario.Scenario) []phaseCalls {
	return []phaseCalls{{Setup, sc.Setup}, {Run, sc.Run}, {Teardown, sc.Teardown}}
}

// expandDepthMax bounds steps that expand into steps that expand; stepsMax bounds a plan as a whole.
const (
	expandDepthMax = 4
	stepsMax       = 20_000
)

func (c *compiler) bindCall(v *View, b boundStep, depth int) {
	if len(c.steps) >= stepsMax {
		if len(c.steps) == stepsMax {
			c.problems.Errorf(b.call.Pos, "too-many-steps", "the scenario has more than %d steps", stepsMax)
			c.steps = append(c.steps, b) // once
		}
		return
	}
	kind, ok := c.catalog.Kind(b.call.Name)
	if !ok {
		c.problems.Add(unknownStep(c.sc, c.catalog, b.call))
		v.unsure, c.actsUnknown = true, true
		return
	}
	b.kind = kind
	problems := &Problems{list: &c.problems, sc: c.sc, call: b.call}
	before := countErrors(c.problems)
	c.checkCapabilities(kind, problems)
	capable := countErrors(c.problems)
	b.step = bindCall(kind, b.call, 1, problems)
	checkReferences(kind, b.step, v, problems)
	if checker, ok := b.step.(Checker); ok && countErrors(c.problems) == capable {
		checker.Check(v, problems)
	}
	expander, expands := b.step.(Expander)
	if countErrors(c.problems) > before {
		v.unsure, c.actsUnknown = true, c.actsUnknown || expands
		c.nameAct(v, b, -1)
		return
	}
	if block, ok := b.step.(Blocker); ok {
		c.bindBlock(v, b, block.Block(), depth)
		return
	}
	if expands {
		if depth == expandDepthMax {
			problems.Errorf("", "too-deep", "%s expands too deeply", kind.Name)
			return
		}
		for _, call := range expander.Expand(v) {
			if call.Pos.Line == 0 {
				call.Pos = b.call.Pos
			}
			next := b
			next.call, next.within, next.expanded = call, kind.Name, true
			c.bindCall(v, next, depth+1)
		}
		return
	}
	c.steps = append(c.steps, b)
	c.nameAct(v, b, len(c.steps)-1)
	v.play(b.step)
}

func countErrors(l diag.List) int {
	n := 0
	for _, d := range l {
		if d.Severity == diag.SeverityError {
			n++
		}
	}
	return n
}

// play changes the state as the step will.
func (v *View) play(step Step) {
	var length time.Duration // of the step, which depends on what was before
	if e, ok := step.(Estimator); ok {
		length = max(0, e.Estimate(v))
	}
	v.playEffect(v.effect(step))
	v.clock += length
}

func (v *View) playEffect(e Effect) {
	v.playNodes(e)
	if g := v.groups[e.Deploys]; g != nil {
		g.deployed = true
	}
	if g := v.groups[e.Boots]; g != nil {
		g.on = true
	}
	for name, g := range v.groups {
		if e.halts(name) {
			g.on = false
			v.endLoads(name)
		}
	}
	if g := v.groups[e.Grows]; g != nil {
		g.count = e.GrowTo
	}
	if e.Load != nil {
		v.loads[loadKey(e.Load.Workload, e.Load.Prefill)] = loadState{ends: v.clock + v.Lasts(*e.Load), bound: e.Load.Runtime > 0}
	}
	if e.Stops != "" {
		v.loads[loadKey(e.Stops, false)] = loadState{ends: v.clock, bound: true}
	}
	if e.CleansUp {
		for _, g := range v.groups {
			g.deployed = false
		}
	}
}

// endLoads notes that no load runs on VMs of a group any more: they have no power.
func (v *View) endLoads(group string) {
	for _, w := range v.Scenario.Workloads {
		for _, prefill := range []bool{false, true} {
			key := loadKey(w.Name, prefill)
			if l, ok := v.loads[key]; ok && w.Group == group {
				v.loads[key] = loadState{ends: min(l.ends, v.clock), bound: true}
			}
		}
	}
}

func (c *compiler) checkCapabilities(kind Kind, problems *Problems) {
	for _, need := range kind.Needs {
		shell := slices.Contains(shellCapabilities, need)
		if shell && c.inventory.Simulated {
			continue
		}
		if shell && !c.options.AllowShell {
			problems.Hint("", "shell-not-allowed", "--allow-shell allows it, if you trust this scenario",
				fmt.Sprintf("%s runs programs of the scenario, which is not allowed", kind.Name))
			continue
		}
		if slices.Contains(c.capabilities, need) || need == target.CapHostShell {
			continue // the controller itself has a shell
		}
		problems.Hint("", "lacks-capability", fmt.Sprintf("the provider %q does not offer %q", c.inventory.Provider, need),
			fmt.Sprintf("%s cannot run on target %q", kind.Name, c.inventory.Name))
	}
	if kind.SwitchesNodes && !c.inventory.PowerAllowed {
		problems.Hint("", codePowerNotAllowed, "the target file allows it with allow: {node_power: true}",
			fmt.Sprintf("%s switches nodes, which target %q does not allow", kind.Name, c.inventory.Name))
	}
}

func (c *compiler) checkTemplates() {
	if c.inventory.AnyTemplate {
		return
	}
	for _, g := range c.sc.Groups {
		if slices.Contains(c.inventory.Templates, g.Template) {
			continue
		}
		d := diag.Diagnostic{Code: "lacks-template", Pos: g.Pos,
			Message: fmt.Sprintf("target %q has no image for template %q of group %q", c.inventory.Name, g.Template, g.Name)}
		if near := diag.Nearest(g.Template, c.inventory.Templates); near != "" {
			d.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.problems.Add(d)
	}
}

// rebind returns the step of b with its durations shrunk by factor.
func (b boundStep) rebind(factor float64) Step {
	var ignored diag.List // the call was checked when it was bound first
	return bindCall(b.kind, b.call, factor, &Problems{list: &ignored, sc: &scenario.Scenario{}, call: b.call})
}

// timeline plays all steps with a time factor and returns where each starts and how long it takes, with or without the boots
// of VMs.
func (c *compiler) timeline(factor float64, boots bool) (starts, lengths []time.Duration) {
	var ignored diag.List
	v := c.newView(&ignored)
	v.sizes, v.boots = c.loadSizes(), boots
	lengths = c.walk(v, factor, func(int, Step, bool) { starts = append(starts, v.clock) })
	return starts, lengths
}
