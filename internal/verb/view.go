package verb

import (
	"maps"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// View is what a step may query during planning: the scenario, the target, and the state after the previous steps. It is read
// only.
type View struct {
	Scenario  *scenario.Scenario
	Inventory target.Inventory
	// AllowShell: the user allows steps that run programs of the scenario.
	AllowShell bool

	groups map[string]*groupState
	loads  map[string]loadState // by loadKey
	Sizes  map[string]LoadSize  // by loadKey
	Clock  time.Duration
	// Scaled has the counts of a rehearsal for each group, as plan.Group.Counts; Factor is its time factor, 0 means 1.
	Scaled map[string]map[int]int
	Factor float64
	// Branch: steps of other branches run at the same time.
	Branch bool
	// Boots includes the boot times of VMs, only for the timeline of a plan: the scaling of a rehearsal and the number of
	// iterations must not depend on an estimate of boots.
	Boots bool
	// Unsure: an earlier step is wrong, so that its effect is unknown.
	Unsure bool
}

// groupState is one group at one point of the plan, in the numbers of the scenario, before a rehearsal shrinks it.
type groupState struct {
	nodes    []int
	count    int
	deployed bool
	on       bool         // its VMs, as far as steps switch them
	down     map[int]bool // indexes of nodes with which VMs lost power, without a later step that restores it
	moved    bool         // some VMs may be elsewhere than placed
}

type loadState struct {
	ends  time.Duration // on the clock of the plan
	bound bool          // by a step, not by the size of its data
}

// Effect is what a step would do now, as far as planning needs it.
func (v *View) Effect(step Step) Effect {
	if d, ok := step.(Describer); ok {
		return d.Effect(v)
	}
	return Effect{}
}

// LoadKey names a load of a workload; its prefill has a different key.
func LoadKey(workload string, prefill bool) string {
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

// VMs returns how many VMs the group has at this point of the run; a rehearsal has fewer than the scenario.
func (v *View) VMs(group string) int {
	count := v.GroupCount(group)
	if n, ok := v.Scaled[group][count]; ok {
		return n
	}
	return count
}

// VMsOf returns how many VMs a workload runs on at this point of the run.
func (v *View) VMsOf(workload string) int {
	w, _ := v.Scenario.Workload(workload)
	return v.VMs(w.Group)
}

func (v *View) staggered(l LoadSpec) Staggering { return l.Staggered(v.VMsOf(l.Workload), v.Factor) }

// StartsWithin returns how long a step waits until all VMs of a load have started.
func (v *View) StartsWithin(l LoadSpec) time.Duration { return v.staggered(l).Held }

// Lasts returns how long a load takes from the start of its first VM to the end of its last.
func (v *View) Lasts(l LoadSpec) time.Duration {
	length := v.Transfer(l.Workload, l.Prefill)
	if l.Runtime > 0 {
		length = v.Within(l.Workload, l.Runtime)
	}
	return v.staggered(l).Last + length
}

// Deployed reports whether a step before this one deployed the group. After a wrong step the answer is yes, so that one mistake
// is reported only once.
func (v *View) Deployed(group string) bool {
	return v.Unsure || v.groups[group] != nil && v.groups[group].deployed
}

// DeployedForSure reports whether a step before this one deployed the group, ignoring the possible effects of wrong steps.
func (v *View) DeployedForSure(group string) bool {
	return v.groups[group] != nil && v.groups[group].deployed
}

// PoweredOn reports whether a step before this one powered the VMs of the group on, and no later one powered them off. It ignores
// VMs that go off with their node. After a wrong step the answer is yes.
func (v *View) PoweredOn(group string) bool {
	return v.Unsure || v.groups[group] != nil && v.groups[group].on
}

// GroupNames returns the names of all groups in the order of the scenario.
func (v *View) GroupNames() []string {
	names := make([]string, len(v.Scenario.Groups))
	for i, g := range v.Scenario.Groups {
		names[i] = g.Name
	}
	return names
}

// Started reports whether a step before this one started the workload (or its prefill).
func (v *View) Started(workload string, prefill bool) bool {
	_, ok := v.loads[LoadKey(workload, prefill)]
	return ok || v.Unsure
}

// LoadLeft returns how long the load will still run at this point of the plan.
func (v *View) LoadLeft(workload string, prefill bool) time.Duration {
	return max(0, v.loads[LoadKey(workload, prefill)].ends-v.Clock)
}

// LoadSize bounds one run of a load that no step bounds.
type LoadSize struct {
	Bytes       int64         // on one VM
	Least, Most time.Duration // as in load.Plan
}

// Transfer estimates the duration of a load that no step bounds from the bytes that it moves, at least the time that its rates
// require and at most its runtimes. All VMs that the group has at this point share the throughput.
func (v *View) Transfer(workload string, prefill bool) time.Duration {
	size := v.Sizes[LoadKey(workload, prefill)]
	length := max(size.Least, time.Duration(float64(size.Bytes)*float64(v.VMsOf(workload))/plan.AssumedBytesPerSecond*float64(time.Second)))
	if size.Most > 0 {
		length = min(length, size.Most)
	}
	return length
}

// Within returns the duration of a load that a step bounds to runtime; its configuration may end it earlier.
func (v *View) Within(workload string, runtime time.Duration) time.Duration {
	if most := v.Sizes[LoadKey(workload, false)].Most; most > 0 {
		return min(runtime, most)
	}
	return runtime
}

// Fixed reports whether the configuration of a load determines its duration.
func (v *View) Fixed(l LoadSpec) bool {
	size := v.Sizes[LoadKey(l.Workload, l.Prefill)]
	return size.Most > 0 && size.Least == size.Most
}

// Play applies the effect of a step to the state.
func (v *View) Play(step Step) {
	var length time.Duration // of the step, which depends on the state before it
	if e, ok := step.(Estimator); ok {
		length = max(0, e.Estimate(v))
	}
	v.playEffect(v.Effect(step))
	v.Clock += length
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
		if e.AllOff(name) {
			g.on = false
			v.endLoads(name)
		}
	}
	if g := v.groups[e.Grows]; g != nil {
		g.count = e.GrowTo
	}
	if e.Load != nil {
		v.loads[LoadKey(e.Load.Workload, e.Load.Prefill)] = loadState{ends: v.Clock + v.Lasts(*e.Load), bound: e.Load.Runtime > 0}
	}
	if e.Stops != "" {
		v.loads[LoadKey(e.Stops, false)] = loadState{ends: v.Clock, bound: true}
	}
	if e.CleansUp {
		for _, g := range v.groups {
			g.deployed = false
		}
	}
}

// endLoads notes that the loads on VMs of a group have ended, because the VMs have no power.
func (v *View) endLoads(group string) {
	for _, w := range v.Scenario.Workloads {
		for _, prefill := range []bool{false, true} {
			key := LoadKey(w.Name, prefill)
			if l, ok := v.loads[key]; ok && w.Group == group {
				v.loads[key] = loadState{ends: min(l.ends, v.Clock), bound: true}
			}
		}
	}
}

// Clone returns a copy with independent state.
func (v *View) Clone() *View {
	out := *v
	out.groups, out.loads = map[string]*groupState{}, maps.Clone(v.loads)
	for name, g := range v.groups {
		copied := *g
		copied.down = maps.Clone(g.down)
		out.groups[name] = &copied
	}
	return &out
}

// Merge adds the effects of a branch. Branches change different things, so the order does not matter.
func (v *View) Merge(branch *View) {
	for name, g := range branch.groups {
		have := v.groups[name]
		have.moved = have.moved || g.moved || !maps.Equal(have.down, g.down) // their order is unknown
		have.deployed, have.on, have.count = have.deployed || g.deployed, have.on || g.on, max(have.count, g.count)
	}
	for key, l := range branch.loads {
		if have, ok := v.loads[key]; !ok || l.ends != have.ends {
			v.loads[key] = l
		}
	}
	v.Unsure = v.Unsure || branch.Unsure
}

// Span is what determines the duration of a step.
type Span int

const (
	SpanTarget Span = iota // the target and the size of disks
	SpanTold               // the scenario alone
	SpanAny                // unknown: a load without a runtime, or a program
)

// Span returns what determines the duration of a step that begins now.
func (v *View) Span(step Step) Span {
	e := v.Effect(step)
	_, estimates := step.(Estimator)
	switch load := v.loads[LoadKey(e.Awaits, false)]; {
	case e.Settles != nil, e.Starts() != "" && !e.Load.Async && e.Load.Runtime == 0, e.Awaits != "" && !load.bound:
		return SpanAny
	case e.Load != nil && e.Load.Prefill && !e.Load.Async, e.AwaitsPrefill != "", e.Boots != "", e.Grows != "", !estimates:
		return SpanTarget
	}
	return SpanTold
}

// placeGroup returns the nodes of a group and its initial number of VMs. No count means one VM per node.
func placeGroup(g scenario.Group, nodes int, problems *diag.List) *groupState {
	var indexes []int
	slice, err := scenario.ParseNodes(g.Nodes)
	if err != nil {
		problems.Errorf(g.Pos, "node-slice", "group %q: %v", g.Name, err)
	} else if indexes, err = slice.Select(nodes); err != nil {
		problems.Errorf(g.Pos, "node-range", "group %q: %v", g.Name, err)
	} else if len(indexes) == 0 {
		problems.Errorf(g.Pos, "node-range", "nodes %q of group %q select none of the target's %d nodes", g.Nodes, g.Name, nodes)
	}
	state := &groupState{nodes: indexes, count: len(indexes), down: map[int]bool{}}
	switch {
	case g.PerCluster > 0:
		state.count = g.PerCluster
	case g.PerNode > 0:
		state.count = g.PerNode * len(indexes)
	}
	if state.count > GroupCountMax {
		problems.Errorf(g.Pos, "group-size", "group %q has %d VMs, more than the bound of %d", g.Name, state.count, GroupCountMax)
	}
	return state
}

// Place sets the initial state: all groups on their nodes, nothing deployed and no load.
func (v *View) Place(problems *diag.List) {
	v.groups, v.loads = map[string]*groupState{}, map[string]loadState{}
	for _, g := range v.Scenario.Groups {
		v.groups[g.Name] = placeGroup(g, len(v.Inventory.Nodes), problems)
	}
}

// Prolong extends a load at least until the given time.
func (v *View) Prolong(workload string, until time.Duration) {
	key := LoadKey(workload, false)
	if l, ok := v.loads[key]; ok {
		l.ends = max(l.ends, until)
		v.loads[key] = l
	}
}
