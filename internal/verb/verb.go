// Package verb defines what a step of a scenario is: its registration, its arguments, its properties for planning, and its
// environment while it runs. Package step has the verbs themselves; packages planner and run make and run plans.
//
//	Kind ──Bind: arguments of a call──▶ Step ──Check, Expand, Effect, Estimate: on a View──▶ plan
//	                                    Step ──Run, Undo: in an Env──▶ the target
//
//	verb.go               Kind, Step and what a step may offer besides, Effect, Catalog
//	bind.go, refer.go     arguments bound to the fields of a struct; the names in them checked
//	view.go, boots.go, stranded.go  groups, loads and nodes as the steps before left them, on the clock of a plan
//	env.go, spec.go       what a running step acts through; what a load is started with
package verb

import (
	"context"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Kind registers one verb of scenarios.
type Kind struct {
	Name    string // dotted, X-Ray's spelling: "workload.Start"
	Summary string // one sentence
	Doc     string // what a user needs to know beyond the summary; paragraphs, no headings
	// Example is the text of a whole scenario (test.yml) that uses the step, with one workload file named load.fio at
	// most. It lints, compiles and runs on the fake target.
	Example string
	// Needs lists the capabilities that the target must have.
	Needs []target.Capability
	// SwitchesNodes: the owner of the target must have allowed power operations.
	SwitchesNodes bool
	// MaintainsNodes: the owner of the target must have allowed maintenance.
	MaintainsNodes bool
	// SetsStorage: the owner of the target must have allowed changes of its storage container.
	SetsStorage bool
	// Waits: the step only waits. It has no label, no window is cut at it, and charts do not mark it.
	Waits bool
	// New returns a step without arguments; Bind sets its fields.
	New func() Step
}

// Step is one action. Its exported fields with an arg tag are its arguments, set before any method is called.
//
//	Workload string        `arg:"workload_name,required" of:"workload"`
//	Runtime  time.Duration `arg:"runtime_secs" unit:"s" scale:"runtime" default:"60"`
//
// Run blocks until the action is done, or until ctx ends, and then returns ctx's error. Steps run one after the other or, in
// branches of the scenario, in parallel; a step starts background work through Env.
type Step interface {
	Run(ctx context.Context, env *Env) error
}

// Checker checks a step's arguments on this target, before the run changes anything.
type Checker interface {
	Check(v *View, problems *Problems)
}

// Lacker lists, in one phrase each, everything that the target and this machine lack for the step, so that a user can bring all of it
// at once. It replaces the check of the capabilities that the kind needs. Simulated targets lack nothing.
type Lacker interface {
	Lacks(v *View) []string
}

// Expander replaces a step by other calls. The step itself is never run.
type Expander interface {
	Expand(v *View) []scenario.Call
}

// Undoer reverts effects of Run that outlive the run's VMs. Undo is called at the end of the run in the reverse order of Run,
// whether Run succeeded, failed or was cancelled, and also after a restart, with a step bound again from the journal. It must be
// idempotent.
type Undoer interface {
	Undo(ctx context.Context, env *Env) error
}

// Estimator estimates how long Run will block, as far as the arguments determine it.
type Estimator interface {
	Estimate(v *View) time.Duration
}

// Describer describes what a step will do to groups, loads and nodes, as far as planning needs it.
type Describer interface {
	Effect(v *View) Effect
}

// Effect is what one step does to the simulated state of a plan.
type Effect struct {
	Subject string   // group, workload or nodes, for titles: "OLTP"
	Groups  []string // that it works on, in addition to those in its arguments
	Deploys string   // group whose VMs are created
	Grows   string   // group that grows to GrowTo VMs, in the numbers of the scenario
	GrowTo  int
	Load    *LoadSpec // load that begins; blocks until it ended unless Async
	Stops   string    // workload that ends here
	// Awaits is the workload whose end the step waits for, AwaitsPrefill the workload whose prefill it waits for.
	Awaits, AwaitsPrefill string
	// Settles is the load that the step waits for to be steady; nil for none.
	Settles *Settling
	// PowersOff and PowersOn are indexes of nodes.
	PowersOff []int
	PowersOn  []int
	// Changes is the group whose VMs change their power state, node or disks.
	Changes string
	// MovesAll: VMs of all groups may be moved to other nodes.
	MovesAll bool
	// Boots is the group whose VMs are all on afterwards, Halts the group whose VMs are all off; HaltsAll means all groups.
	Boots    string
	Halts    string
	HaltsAll bool
	// SetsHA: the step changes whether VMs of this run restart after a node failure.
	SetsHA bool
	// Snapshots is how many snapshots of each VM of group Snapshot are taken.
	Snapshot  string
	Snapshots int
	// CleansUp: all VMs of this run are gone afterwards.
	CleansUp bool
}

// AllOff reports whether all VMs of a group are off or deleted afterwards, which ends their loads.
func (e Effect) AllOff(group string) bool {
	return e.HaltsAll || e.CleansUp || e.Halts != "" && e.Halts == group
}

// Starts returns the workload whose load, not prefill, begins; "" for none.
func (e Effect) Starts() string {
	if e.Load == nil || e.Load.Prefill {
		return ""
	}
	return e.Load.Workload
}

// ShellCapabilities run programs of the scenario; a simulated target runs no programs and so has them all.
var ShellCapabilities = []target.Capability{target.CapGuestShell, target.CapHostShell, target.CapPlaybook}

// RunsPrograms reports whether the step runs programs of the scenario, whose effects are unknown beforehand.
func (k Kind) RunsPrograms() bool {
	return slices.ContainsFunc(k.Needs, func(need target.Capability) bool { return slices.Contains(ShellCapabilities, need) })
}

// Expands reports whether the plan replaces the step by others, whose number depends on the target.
func (k Kind) Expands() bool {
	if k.New == nil {
		return false
	}
	_, ok := k.New().(Expander)
	return ok
}

// Catalog has the verbs and generators that a plan may use.
type Catalog struct {
	Steps      []Kind
	Generators load.Kinds
	// CheckQuery returns the fault of a result's query, for a result that may name a group; nil if it is valid. It is injected
	// because the parser belongs to the metric store, on which planning does not depend.
	CheckQuery func(query, group string) *QueryFault
}

// Kind returns the step kind with that name.
func (c Catalog) Kind(name string) (Kind, bool) {
	i := slices.IndexFunc(c.Steps, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return c.Steps[i], true
}

// StepNames returns the names of all kinds, sorted.
func (c Catalog) StepNames() []string {
	names := make([]string, len(c.Steps))
	for i, k := range c.Steps {
		names[i] = k.Name
	}
	slices.Sort(names)
	return names
}

// Blocker is a step that contains other steps.
//
// Planning unrolls a repetition, so that plan, estimate, footprint, journal and undo need no special case. A repetition with a
// duration is unrolled as often as its steps can fit; a run skips iterations that would begin after the duration. Parallel
// branches follow their head in the plan.
type Blocker interface {
	Block() Block
}

// Block is the content of a Blocker.
type Block struct {
	Branches scenario.Blocks
	Parallel bool          // branches run in parallel, the steps of each in order
	Count    int           // of a repetition: maximum iterations; 0: as many as fit into Duration
	Duration time.Duration // of a repetition: no iteration begins later; 0: bounded only by Count
}

// GroupCountMax bounds the VMs of a group, as X-Ray does.
const GroupCountMax = 10_000

// QueryFault is a fault in a query of a result.
type QueryFault struct {
	Offset, Length int // of the fault in the query, in bytes; -1 and 0 if its place is unknown
	Reason         string
}
