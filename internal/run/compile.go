package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Refusal is what Compile returns when there is no plan: all diagnostics, and the exit code that suits them. It unwraps
// to *diag.ListError.
type Refusal struct {
	*diag.ListError
	exit int
}

// ExitCode is diag.ExitUnavailable when only the target stands in the way, else diag.ExitData.
func (r *Refusal) ExitCode() int { return r.exit }

// Unwrap returns the list.
func (r *Refusal) Unwrap() error { return r.ListError }

// targetCodes are the codes of diagnostics where the scenario is right and the target is wrong.
var targetCodes = []string{"lacks-capability", "power-not-allowed", "shell-not-allowed", "node-range", "lacks-template"}

// boundStep is a call with its kind and a factory, so that it can be bound again with another time factor.
type boundStep struct {
	kind   Kind
	call   scenario.Call
	phase  Phase
	within string
	step   Step

	parallel  bool   // the head of branches, which stand behind it
	branch    int    // from 1, of the head before; 0: it is in none
	iteration string // of the repetitions around it, outermost first: "2", "2.1"
	turns     []turn // in repetitions that last for a time, outermost first
}

// compiler holds what one Compile works on.
type compiler struct {
	sc           *scenario.Scenario
	inventory    target.Inventory
	capabilities []target.Capability
	catalog      Catalog
	options      Options
	problems     diag.List
	steps        []boundStep
	plan         *Plan
	factor       float64          // time factor, 1 in a full run
	lasting      map[int]*Lasting // of a rehearsal, by index of the step that starts the load

	// acts are the names of what the run phase does, actsOfNodes that some depend on the target, actsUnknown that a step
	// could not be named.
	acts                     []string
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
	c := &compiler{sc: sc, inventory: inventory, capabilities: capabilities, catalog: catalog, options: options, factor: 1}
	if options.Rehearse > 0 && len(inventory.Nodes) > rehearsalNodesMax {
		c.inventory.Nodes = slices.Clone(inventory.Nodes[:rehearsalNodesMax])
	}
	c.plan = c.newPlan()
	return c
}

func (c *compiler) newPlan() *Plan {
	sc, inv := c.sc, c.inventory
	return &Plan{
		Format: planFormat,
		Scenario: PlanScenario{Name: sc.Name, DisplayName: sc.DisplayName, Hash: sc.Hash,
			Preset: sc.Preset},
		Target: PlanTarget{Provider: inv.Provider, Name: inv.Name, Simulated: inv.Simulated, Nodes: inv.Nodes,
			FreeBytes: inv.FreeBytes, TotalBytes: inv.TotalBytes},
		Seed: c.options.Seed, AllowShell: c.options.AllowShell,
		Power: []PowerOperation{}, Undo: []string{}, Unfit: []Unfit{}, Notes: []string{}, Warnings: diag.List{},
		Groups: []PlanGroup{}, Workloads: []PlanWorkload{}, Steps: []PlanStep{},
		workloads: map[string]*workloadPlan{}, inventory: inv, scenario: sc,
	}
}

// refusal returns the problems found so far as an error, with the user's own lines filled in.
func (c *compiler) refusal() error {
	c.point()
	if !c.problems.HasErrors() {
		return nil
	}
	exit := diag.ExitUnavailable
	for _, d := range c.problems {
		if d.Severity == diag.SeverityError && !slices.Contains(targetCodes, d.Code) {
			exit = diag.ExitData
		}
	}
	var list *diag.ListError
	errors.As(c.problems.Err(), &list)
	return &Refusal{ListError: list, exit: exit}
}

// point fills in the user's own lines.
func (c *compiler) point() {
	for i, d := range c.problems {
		if d.Source == "" && d.Pos.File == c.sc.Document {
			c.problems[i] = c.sc.Point(d, 0)
		}
	}
}

// newView returns the state before the first step: groups placed, nothing deployed, no load.
func (c *compiler) newView(problems *diag.List) *View {
	v := &View{Scenario: c.sc, Inventory: c.inventory, AllowShell: c.options.AllowShell,
		groups: map[string]*groupState{}, loads: map[string]loadState{}, sizes: map[string]loadSize{}}
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
	for _, p := range []struct {
		phase Phase
		calls []scenario.Call
	}{{Setup, c.sc.Setup}, {Run, c.sc.Run}, {Teardown, c.sc.Teardown}} {
		for _, call := range p.calls {
			c.bindCall(v, boundStep{call: call, phase: p.phase}, 0)
		}
	}
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
		v.unsure, c.actsUnknown = true, c.actsUnknown || expands || hasNodes(kind)
		c.nameAct(b, v)
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
			next.call, next.within = call, kind.Name
			c.bindCall(v, next, depth+1)
		}
		return
	}
	c.steps = append(c.steps, b)
	c.nameAct(b, v)
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
	if e, ok := step.(Describer); ok {
		v.playEffect(e.Effect(v))
	}
	if e, ok := step.(Estimator); ok {
		v.clock += max(0, e.Estimate(v))
	}
}

func (v *View) playEffect(e Effect) {
	if g := v.groups[e.Deploys]; g != nil {
		g.deployed = true
	}
	if g := v.groups[e.Grows]; g != nil {
		g.count = e.GrowTo
	}
	if e.Load != nil {
		length := v.Within(e.Load.Workload, e.Load.Runtime)
		if length == 0 {
			length = v.Transfer(e.Load.Workload, e.Load.Prefill)
		}
		v.loads[loadKey(e.Load.Workload, e.Load.Prefill)] = loadState{ends: v.clock + length + e.Load.Stagger}
	}
	if e.Stops != "" {
		v.loads[loadKey(e.Stops, false)] = loadState{ends: v.clock}
	}
	if e.CleansUp {
		for _, g := range v.groups {
			g.deployed = false
		}
	}
}

// shellCapabilities run programs of the scenario; a simulated target runs nothing and so has them all.
var shellCapabilities = []target.Capability{target.CapGuestShell, target.CapHostShell, target.CapPlaybook}

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
		problems.Hint("", "power-not-allowed", "the target file allows it with allow: {node_power: true}",
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

// timeline plays all steps with a time factor and returns where each starts and how long it takes.
func (c *compiler) timeline(factor float64) (starts, lengths []time.Duration) {
	var ignored diag.List
	v := c.newView(&ignored)
	v.sizes = c.loadSizes()
	lengths = c.walk(v, factor, func(int, Step, bool) { starts = append(starts, v.clock) })
	return starts, lengths
}
