package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// Refusal is the error of Compile if there is no plan: all diagnostics, and the matching exit code. It unwraps to
// *diag.ListError.
type Refusal struct {
	*diag.ListError
	exit int
}

// ExitCode is diag.ExitData when the scenario has errors, diag.ExitRefused when its target does not allow switching nodes, and
// otherwise diag.ExitUnavailable.
func (r *Refusal) ExitCode() int { return r.exit }

// Unwrap returns the list.
func (r *Refusal) Unwrap() error { return r.ListError }

const (
	codePowerNotAllowed       = "power-not-allowed"
	codeMaintenanceNotAllowed = "maintenance-not-allowed"
	codeStorageNotAllowed     = "container-settings-not-allowed"
	codeShellNotAllowed       = "shell-not-allowed"
	codeLacks                 = "lacks-capability"
)

// targetCodes are the codes of diagnostics of a valid scenario on an unsuitable target.
var targetCodes = []string{codeLacks, codePowerNotAllowed, codeMaintenanceNotAllowed, codeStorageNotAllowed, codeShellNotAllowed, "node-range", "lacks-template"}

// Bound is a call with its kind and a factory, so that it can be bound again with another time factor.
type Bound struct {
	Kind   verb.Kind
	Call   scenario.Call
	phase  plan.Phase
	Within string
	Step   verb.Step

	expanded  bool   // an expanded step represents it in the scenario
	Parallel  bool   // the head of branches, which follow it
	branch    int    // from 1, under the preceding head; 0: not in a branch
	iteration string // of the repetitions around it, outermost first: "2", "2.1"
	turns     []turn // in repetitions that last for a time, outermost first
}

// draft is a plan under construction, with its inputs.
type draft struct {
	sc        *scenario.Scenario
	inventory target.Inventory
	nodes     []target.Node // all of the target; a rehearsal uses fewer
	catalog   verb.Catalog
	options   Options
	problems  diag.List
	plan      *Plan
}

// script is the bound steps of a draft, which can be played on the clock of a plan.
type script struct {
	*draft
	steps   []Bound
	factor  float64          // time factor, 1 in a full run
	planned float64          // time factor with which the workloads are planned
	lasting map[int]*lasting // of a rehearsal, by index of the step that starts the load
}

// binder makes steps of calls.
type binder struct {
	*script
	capabilities []target.Capability
	dry          bool     // without a target
	lacking      []string // reported by steps

	// acts are the named steps of the run phase; actsOfNodes means that some depend on the target, actsUnknown that a step could
	// not be named.
	acts                     []act
	actsOfNodes, actsUnknown bool
}

// Compile binds the scenario to a target. It reports all problems at once, as a *Refusal, and changes nothing. capabilities are
// those of target.Capabilities, fewer when the user forbids some.
func Compile(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog verb.Catalog,
	options Options) (*Plan, error) {
	c := newBinder(sc, inventory, capabilities, catalog, options)
	if len(c.inventory.Nodes) == 0 {
		return nil, &diag.Error{Code: "no-nodes", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("target %q has no node", inventory.Name)}
	}
	w := workloads{c.script}
	r := rehearsing{w}
	c.bindAll(false)
	c.checkWindows()
	c.checkQueries()
	w.chooseGenerators()
	if err := c.refusal(); err != nil {
		return nil, err
	}
	w.planGroups()
	r.rehearseVMs()
	w.planWorkloads()
	c.checkSteps()
	c.checkStarts()
	if options.Rehearse > 0 && !c.problems.HasErrors() {
		c.findLasting()
		r.rehearseSizes()
	}
	if err := c.refusal(); err != nil {
		return nil, err
	}
	for i := range c.plan.Groups {
		c.plan.Groups[i].TouchedBytes = c.plan.touchedBytes(c.plan.Groups[i].Name)
	}
	r.chooseTimes()
	w.listWorkloads()
	finisher{c}.finish()
	if err := c.refusal(); err != nil {
		return nil, err
	}
	return c.plan, nil
}

func newBinder(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog verb.Catalog,
	options Options) *binder {
	d := &draft{sc: sc, inventory: inventory, nodes: inventory.Nodes, catalog: catalog, options: options}
	if options.Rehearse > 0 && len(inventory.Nodes) > rehearsalNodesMax {
		d.inventory.Nodes = slices.Clone(inventory.Nodes[:rehearsalNodesMax])
	}
	d.plan = d.newPlan()
	return &binder{script: &script{draft: d, factor: 1, planned: 1}, capabilities: capabilities}
}

func (c *draft) newPlan() *Plan {
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
		workloads: map[string]*workloadPlan{}, inventory: inv, Document: sc,
	}
}

// refusal returns the problems found so far as an error, with the user's own lines filled in.
func (c *draft) refusal() error {
	c.point()
	if !c.problems.HasErrors() {
		return nil
	}
	var list *diag.ListError
	errors.As(c.problems.Err(), &list)
	return &Refusal{ListError: list, exit: exitOf(c.problems)}
}

// exitOf returns the exit code for problems, at least one of which is an error.
func exitOf(problems diag.List) int {
	exit := diag.ExitUnavailable
	for _, d := range problems {
		switch {
		case d.Severity != diag.SeverityError:
		case !slices.Contains(targetCodes, d.Code):
			return diag.ExitData
		case slices.Contains([]string{codePowerNotAllowed, codeMaintenanceNotAllowed, codeStorageNotAllowed}, d.Code):
			exit = diag.ExitRefused
		}
	}
	return exit
}

// point fills in the user's own lines.
func (c *draft) point() {
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

// newView returns the state before the first step.
func (c *script) newView(problems *diag.List) *verb.View {
	v := &verb.View{Scenario: c.sc, Inventory: c.inventory, AllowShell: c.options.AllowShell, Scaled: map[string]map[int]int{}, Factor: c.factor}
	for _, g := range c.plan.Groups {
		v.Scaled[g.Name] = g.Counts
	}
	v.Place(problems)
	return v
}

// bindAll binds, checks and expands every call, in order, while it plays their effects on groups and loads. A partially read
// scenario may lack calls.
func (c *binder) bindAll(partial bool) {
	v := c.newView(&c.problems)
	v.Unsure, c.actsUnknown = partial, partial
	c.checkTemplates()
	if !c.dry {
		c.checkAddresses()
	}
	for _, p := range phasesOf(c.sc) {
		for _, call := range p.calls {
			c.bindCall(v, Bound{Call: call, phase: p.phase}, 0)
		}
	}
}

type phaseCalls struct {
	phase plan.Phase
	calls []scenario.Call
}

func phasesOf(sc *scenario.Scenario) []phaseCalls {
	return []phaseCalls{{plan.Setup, sc.Setup}, {plan.Run, sc.Run}, {plan.Teardown, sc.Teardown}}
}

// expandDepthMax bounds steps that expand into steps that expand; stepsMax bounds a plan as a whole.
const (
	expandDepthMax = 4
	stepsMax       = 20_000
)

func (c *binder) bindCall(v *verb.View, b Bound, depth int) {
	if len(c.steps) >= stepsMax {
		if len(c.steps) == stepsMax {
			c.problems.Errorf(b.Call.Pos, "too-many-steps", "the scenario has more than %d steps", stepsMax)
			c.steps = append(c.steps, b) // once
		}
		return
	}
	kind, ok := c.catalog.Kind(b.Call.Name)
	if !ok {
		c.problems.Add(unknownStep(c.sc, c.catalog, b.Call))
		v.Unsure, c.actsUnknown = true, true
		return
	}
	b.Kind = kind
	problems := &verb.Problems{List: &c.problems, Scenario: c.sc, Call: b.Call}
	before := countErrors(c.problems)
	if _, lists := kind.New().(verb.Lacker); !lists {
		c.checkCapabilities(kind, problems)
	}
	capable := countErrors(c.problems)
	b.Step = kind.Bind(b.Call, 1, problems)
	if lacker, lists := b.Step.(verb.Lacker); lists && countErrors(c.problems) == capable {
		c.checkLacks(v, b, lacker, problems)
		capable = countErrors(c.problems)
	}
	kind.CheckReferences(b.Step, v, problems)
	if checker, ok := b.Step.(verb.Checker); ok && countErrors(c.problems) == capable {
		checker.Check(v, problems)
	}
	expander, expands := b.Step.(verb.Expander)
	if countErrors(c.problems) > before {
		v.Unsure, c.actsUnknown = true, c.actsUnknown || expands
		c.nameAct(v, b, -1)
		return
	}
	if block, ok := b.Step.(verb.Blocker); ok {
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
				call.Pos = b.Call.Pos
			}
			next := b
			next.Call, next.Within, next.expanded = call, kind.Name, true
			c.bindCall(v, next, depth+1)
		}
		return
	}
	c.steps = append(c.steps, b)
	c.nameAct(v, b, len(c.steps)-1)
	v.Play(b.Step)
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

const (
	shellHint  = "--allow-shell allows it, if you trust this scenario"
	shellLacks = "--allow-shell, if you trust this scenario"
)

func (c *binder) checkCapabilities(kind verb.Kind, problems *verb.Problems) {
	for _, need := range kind.Needs {
		shell := slices.Contains(verb.ShellCapabilities, need)
		if shell && c.inventory.Simulated {
			continue
		}
		if shell && !c.options.AllowShell {
			problems.Hint("", codeShellNotAllowed, shellHint,
				fmt.Sprintf("%s runs programs of the scenario, which is not allowed", kind.Name))
			continue
		}
		if slices.Contains(c.capabilities, need) || need == target.CapHostShell {
			continue // the controller itself has a shell
		}
		problems.Hint("", codeLacks, fmt.Sprintf("the provider %q does not offer %q", c.inventory.Provider, need),
			fmt.Sprintf("%s cannot run on target %q", kind.Name, c.inventory.Name))
	}
	if kind.MaintainsNodes && !c.inventory.MaintenanceAllowed && slices.Contains(c.capabilities, target.CapMaintenance) {
		problems.Hint("", codeMaintenanceNotAllowed, "the target file allows it with allow: {maintenance: true}",
			fmt.Sprintf("%s puts nodes into maintenance, which target %q does not allow", kind.Name, c.inventory.Name))
	}
	if kind.SetsStorage && !c.inventory.ContainerSettingsAllowed && slices.Contains(c.capabilities, target.CapContainer) {
		problems.Hint("", codeStorageNotAllowed, "the target file allows it with allow: {container_settings: true}",
			fmt.Sprintf("%s changes settings of the storage container, which target %q does not allow", kind.Name, c.inventory.Name))
	}
	if kind.SwitchesNodes && !c.inventory.PowerAllowed {
		problems.Hint("", codePowerNotAllowed, "the target file allows it with allow: {node_power: true}",
			fmt.Sprintf("%s switches nodes, which target %q does not allow", kind.Name, c.inventory.Name))
	}
}

// checkLacks reports everything that a step lacks in one message, and nothing that a step before it lacked too.
func (c *binder) checkLacks(v *verb.View, b Bound, step verb.Lacker, problems *verb.Problems) {
	if c.inventory.Simulated || c.dry {
		return
	}
	var lacks []string
	code, message := codeLacks, fmt.Sprintf("%s cannot run on target %q", b.Kind.Name, c.inventory.Name)
	if !c.options.AllowShell {
		lacks = []string{shellLacks}
		code, message = codeShellNotAllowed, b.Kind.Name+" runs programs of the scenario, which is not allowed"
	}
	fresh := slices.DeleteFunc(append(lacks, step.Lacks(v)...), func(one string) bool { return slices.Contains(c.lacking, one) })
	c.lacking = append(c.lacking, fresh...)
	switch {
	case len(fresh) == 0:
	case len(fresh) == 1 && fresh[0] == shellLacks:
		problems.Hint("", code, shellHint, message)
	default:
		problems.Hint("", code, "missing: "+strings.Join(fresh, "; "), message)
	}
}

func (c *draft) checkTemplates() {
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

// Rebind returns the step of b with its durations shrunk by factor.
func (b Bound) Rebind(factor float64) verb.Step {
	var ignored diag.List // the call was checked when it was bound first
	return b.Kind.Bind(b.Call, factor, &verb.Problems{List: &ignored, Scenario: &scenario.Scenario{}, Call: b.Call})
}

// times plays all steps with a time factor and returns where each starts and how long it takes, with or without the boots
// of VMs.
func (c *script) times(factor float64, boots bool) (starts, lengths []time.Duration) {
	var ignored diag.List
	v := c.newView(&ignored)
	v.Sizes, v.Boots = c.loadSizes(factor), boots
	lengths = c.walk(v, factor, func(int, verb.Step, bool) { starts = append(starts, v.Clock) })
	return starts, lengths
}

func unknownStep(sc *scenario.Scenario, catalog verb.Catalog, call scenario.Call) diag.Diagnostic {
	d := diag.Diagnostic{Code: "unknown-step", Severity: diag.SeverityError, Pos: call.Pos, Width: call.Width,
		Message: fmt.Sprintf("unknown step %q", call.Name), Hint: "bragg schema lists all steps"}
	if near := diag.Nearest(call.Name, catalog.StepNames()); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return sc.Point(d, call.RenderedLine)
}

// BindTeardown binds the calls of teardown again, to the target in its current state: a plan on disk contains no steps.
func (p *Plan) BindTeardown(inventory target.Inventory, capabilities []target.Capability, catalog verb.Catalog) ([]Bound, diag.List) {
	// Slices of nodes count the nodes that the plan used.
	inventory.Nodes = inventory.Nodes[:min(len(inventory.Nodes), len(p.Target.Nodes))]
	c := newBinder(p.Document, inventory, capabilities, catalog, Options{AllowShell: p.AllowShell})
	c.plan = p
	v := c.newView(&c.problems)
	v.Unsure = true // it is unknown what the run had deployed and started
	for _, call := range p.Document.Teardown {
		c.bindCall(v, Bound{Call: call, phase: plan.Teardown}, 0)
	}
	return c.steps, c.problems
}
