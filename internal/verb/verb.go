// Package verb says what a step of a scenario is: how it is registered, which arguments it has, what it says of itself while a plan is
// made, and what it sees while it runs. Which verbs there are is the matter of package step; plans are made and run elsewhere.
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
	Doc     string // what a user has to know beyond the summary; paragraphs, no headings
	// Example is the text of a whole scenario (test.yml) that uses the step, with one workload file named load.fio at
	// most. It lints, compiles and runs on the fake target.
	Example string
	// Needs lists what the target must be able to do.
	Needs []target.Capability
	// SwitchesNodes: the owner of the target must have allowed power operations.
	SwitchesNodes bool
	// Waits: the step only lets time pass. It has no label, windows are not cut at it, and charts have no mark of it.
	Waits bool
	// New returns a step with no argument set; bind fills its fields.
	New func() Step
}

// Step is one action. Its exported fields with an arg tag are its arguments, set before any method is called.
//
//	Workload string        `arg:"workload_name,required" of:"workload"`
//	Runtime  time.Duration `arg:"runtime_secs" unit:"s" scale:"runtime" default:"60"`
//
// Run blocks until the action is done or ctx ends, and then returns ctx's error. Steps run one after the
// other, or, in branches that the scenario asked for, at once; what a step starts in the background goes through Env.
type Step interface {
	Run(ctx context.Context, env *Env) error
}

// Checker finds what is wrong with a step's arguments on this target, before anything is touched.
type Checker interface {
	Check(v *View, problems *Problems)
}

// Expander replaces a step by other calls. Such a step is never run itself.
type Expander interface {
	Expand(v *View) []scenario.Call
}

// Undoer reverts effects of Run that outlive the run's VMs. Undo is called at the end of the run in the reverse order of
// Run, whether Run succeeded, failed or was cancelled, and also after a restart with a step that was bound again from the
// journal. It must be idempotent.
type Undoer interface {
	Undo(ctx context.Context, env *Env) error
}

// Estimator says how long Run will block, as far as the arguments tell.
type Estimator interface {
	Estimate(v *View) time.Duration
}

// Describer says what a step will do to groups, loads and nodes, as far as the plan has to know.
type Describer interface {
	Effect(v *View) Effect
}

// Effect is what one step does to the simulated state of a plan.
type Effect struct {
	Subject string   // group, workload or nodes, for titles: "OLTP"
	Groups  []string // that it works on, beside those that its arguments name
	Deploys string   // group whose VMs come into being
	Grows   string   // group that grows to GrowTo VMs, counted as the scenario counts
	GrowTo  int
	Load    *LoadSpec // load that begins; blocks until it ended unless Async
	Stops   string    // workload that ends here
	// Awaits is the workload whose end the step waits for, AwaitsPrefill the one whose prefill.
	Awaits, AwaitsPrefill string
	// PowersOff and PowersOn are indexes of nodes.
	PowersOff []int
	PowersOn  []int
	// Changes is the group whose VMs get another power state, another node or other disks.
	Changes string
	// Boots is the group whose VMs are all on afterwards; Halts the one whose VMs are all off, and HaltsAll means every group.
	Boots    string
	Halts    string
	HaltsAll bool
	// SetsHA: what becomes of all VMs of this run after a node failure is another matter afterwards.
	SetsHA bool
	// Snapshots is how many snapshots of each VM of group Snapshot are taken.
	Snapshot  string
	Snapshots int
	// CleansUp: all VMs of this run are gone afterwards.
	CleansUp bool
}

// AllOff reports whether all VMs of a group are off or gone afterwards, and their loads over with them.
func (e Effect) AllOff(group string) bool {
	return e.HaltsAll || e.CleansUp || e.Halts != "" && e.Halts == group
}

// Starts returns the workload whose load as such begins, not its prefill; "" for none.
func (e Effect) Starts() string {
	if e.Load == nil || e.Load.Prefill {
		return ""
	}
	return e.Load.Workload
}

// ShellCapabilities run programs of the scenario; a simulated target runs nothing and so has them all.
var ShellCapabilities = []target.Capability{target.CapGuestShell, target.CapHostShell, target.CapPlaybook}

// RunsPrograms reports whether the step runs programs of the scenario, whose effects are unknown beforehand.
func (k Kind) RunsPrograms() bool {
	return slices.ContainsFunc(k.Needs, func(need target.Capability) bool { return slices.Contains(ShellCapabilities, need) })
}

// Expands reports whether the plan has other steps in its place, as many as the target requires.
func (k Kind) Expands() bool {
	if k.New == nil {
		return false
	}
	_, ok := k.New().(Expander)
	return ok
}

// Catalog is what a plan may use.
type Catalog struct {
	Steps      []Kind
	Generators load.Kinds
	// CheckQuery says what is wrong with a query of a result that may name a group, nil when nothing is. It is handed in
	// because the parser belongs to the metric store, which plans know nothing of.
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

// Blocker is a step that holds other steps.
//
// A repetition is written out while the plan is made, so that plan, estimate, footprint, journal and undoing need not know
// of it. One that lasts for a time is written out as often as its steps can fit into it; an iteration that would begin after
// the time is left out while the run goes on. Branches that run at once follow their head in the plan.
type Blocker interface {
	Block() Block
}

// Block is what a Blocker holds.
type Block struct {
	Branches scenario.Blocks
	Parallel bool          // branches run at once, each one by itself from top to bottom
	Count    int           // of a repetition: iterations at most; 0: as many as fit into Duration
	Duration time.Duration // of a repetition: none begins later; 0: Count alone bounds it
}

// GroupCountMax bounds the VMs of a group, as X-Ray does.
const GroupCountMax = 10_000

// QueryFault is what is wrong with a query of a result.
type QueryFault struct {
	Offset, Length int // of the fault in the query, in bytes; -1 and 0 where it has no place
	Reason         string
}
