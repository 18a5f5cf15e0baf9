package run

import (
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// View is what a step may ask while a plan is made: the scenario, the target, and the state that the steps before it
// will have left. It is read only.
type View struct {
	Scenario  *scenario.Scenario
	Inventory target.Inventory
	// AllowShell: the user allows steps that run programs of the scenario.
	AllowShell bool

	groups map[string]*groupState
	loads  map[string]loadState // by loadKey
	sizes  map[string]loadSize  // by loadKey
	clock  time.Duration
	// scaled has for each group the counts of a rehearsal, as plan.Group.Counts; factor is its time factor, 0 stands for 1.
	scaled map[string]map[int]int
	factor float64
	// branch: steps of other branches run at the same time.
	branch bool
	// boots counts the boots of VMs, which only the timeline of a plan does: what a rehearsal shrinks and how often a repetition
	// fits must not depend on an estimate of them.
	boots bool
	// unsure: a step before this one is wrong, so that what it would have done is not known.
	unsure bool
}

// groupState is one group at one moment of the plan, counted as the scenario counts, before a rehearsal shrinks it.
type groupState struct {
	nodes    []int
	count    int
	deployed bool
	on       bool         // its VMs, as far as steps switch them
	down     map[int]bool // indexes of nodes with which VMs lost their power, without a step that gives it back
	moved    bool         // some VMs may be elsewhere than placed
}

type loadState struct {
	ends  time.Duration // on the clock of the plan
	bound bool          // by a step, not by the size of its data
}

// effect is what a step does now, as far as the plan has to know.
func (v *View) effect(step Step) Effect {
	if d, ok := step.(Describer); ok {
		return d.Effect(v)
	}
	return Effect{}
}

// loadKey names a load of a workload: its prefill and its run proper are apart.
func loadKey(workload string, prefill bool) string {
	if prefill {
		return "prefill " + workload
	}
	return "load " + workload
}

// GroupNodes returns the indexes of the nodes on which the group's VMs are placed.
func (v *View) GroupNodes(group string) []int {
	if g := v.groups[group]; g != nil {
		return g.nodes
	}
	return nil
}

// GroupCount returns how many VMs the group has at this point of the scenario (or will have, once deployed).
func (v *View) GroupCount(group string) int {
	if g := v.groups[group]; g != nil {
		return g.count
	}
	return 0
}

// vms returns how many VMs the group has at this point of the run: those of a rehearsal are fewer than the scenario says.
func (v *View) vms(group string) int {
	count := v.GroupCount(group)
	if n, ok := v.scaled[group][count]; ok {
		return n
	}
	return count
}

// vmsOf returns how many VMs a workload runs on at this point of the run.
func (v *View) vmsOf(workload string) int {
	w, _ := v.Scenario.Workload(workload)
	return v.vms(w.Group)
}

func (v *View) staggered(l LoadSpec) staggering { return l.staggered(v.vmsOf(l.Workload), v.factor) }

// StartsWithin returns for how long a step waits until all VMs of a load were started.
func (v *View) StartsWithin(l LoadSpec) time.Duration { return v.staggered(l).held }

// Lasts returns how long a load takes from the start of its first VM to the end of its last.
func (v *View) Lasts(l LoadSpec) time.Duration {
	length := v.Transfer(l.Workload, l.Prefill)
	if l.Runtime > 0 {
		length = v.Within(l.Workload, l.Runtime)
	}
	return v.staggered(l).last + length
}

// Deployed tells whether a step before this one deployed the group. After a wrong step the answer is yes, so that one
// mistake is not reported many times over.
func (v *View) Deployed(group string) bool {
	return v.unsure || v.groups[group] != nil && v.groups[group].deployed
}

// DeployedForSure tells whether a step before this one deployed the group, whatever wrong steps would have done.
func (v *View) DeployedForSure(group string) bool {
	return v.groups[group] != nil && v.groups[group].deployed
}

// PoweredOn tells whether a step before this one powered the VMs of the group on, and none off again. What becomes of VMs
// whose node is switched off is not followed. After a wrong step the answer is yes.
func (v *View) PoweredOn(group string) bool {
	return v.unsure || v.groups[group] != nil && v.groups[group].on
}

// GroupNames returns the names of all groups in the order of the scenario.
func (v *View) GroupNames() []string {
	names := make([]string, len(v.Scenario.Groups))
	for i, g := range v.Scenario.Groups {
		names[i] = g.Name
	}
	return names
}

// Started tells whether a step before this one started the workload (or its prefill).
func (v *View) Started(workload string, prefill bool) bool {
	_, ok := v.loads[loadKey(workload, prefill)]
	return ok || v.unsure
}

// LoadLeft returns how long the load will still run at this point of the plan.
func (v *View) LoadLeft(workload string, prefill bool) time.Duration {
	return max(0, v.loads[loadKey(workload, prefill)].ends-v.clock)
}

// loadSize is what bounds one run of a load that no step bounds.
type loadSize struct {
	bytes       int64         // on one VM
	least, most time.Duration // as load.Plan has them
}

// Transfer estimates how long a load takes that no step bounds: from the bytes that it moves, but no less than its rates
// and no more than its runtimes make it. All VMs that the group has at this point share the throughput.
func (v *View) Transfer(workload string, prefill bool) time.Duration {
	size := v.sizes[loadKey(workload, prefill)]
	length := max(size.least, time.Duration(float64(size.bytes)*float64(v.vmsOf(workload))/plan.AssumedBytesPerSecond*float64(time.Second)))
	if size.most > 0 {
		length = min(length, size.most)
	}
	return length
}

// Within returns how long a load takes that a step bounds to runtime: a configuration may end it earlier.
func (v *View) Within(workload string, runtime time.Duration) time.Duration {
	if most := v.sizes[loadKey(workload, false)].most; most > 0 {
		return min(runtime, most)
	}
	return runtime
}

// fixed tells whether the configuration of a load says how long it takes.
func (v *View) fixed(l LoadSpec) bool {
	size := v.sizes[loadKey(l.Workload, l.Prefill)]
	return size.most > 0 && size.least == size.most
}
