package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

// finisher completes the plan with the totals of its steps and workloads.
type finisher struct{ *binder }

// finish writes steps, sums, undo order and notes into the plan.
func (c finisher) finish() {
	c.finishSteps()
	c.plan.Windows = c.windows()
	c.finishFootprint()
	c.finishUndo()
	fitting{c.draft}.fit()
	c.plan.Warnings = append(c.plan.Warnings, c.problems...)
	c.plan.Warnings = append(c.plan.Warnings, c.sc.Warnings...)
}

func (c finisher) finishSteps() {
	starts, lengths := c.times(c.factor, true)
	var ignored diag.List
	v := c.newView(&ignored)
	v.Sizes = c.loadSizes(c.factor)
	labels := c.labels()
	c.walk(v, 1, func(i int, _ verb.Step, late bool) {
		b := c.steps[i]
		for _, t := range b.turns {
			t.repeat.Planned = t.repeat.length(c.factor)
		}
		s := plan.Step{ID: i + 1, Phase: b.phase, Name: b.Kind.Name, Within: b.Within, Line: b.Call.Pos.Line, Branch: b.branch,
			Label: labels[i], Iteration: b.iteration, Args: b.Kind.Values(b.Step), Start: starts[i], Duration: lengths[i], Lasting: c.lasting[i].planned()}
		s.Group, s.Workload = b.Kind.References(b.Step)
		s.Nodes = slices.ContainsFunc(b.Kind.Arguments(), func(a verb.Argument) bool { return a.Type == "nodes" })
		for _, need := range b.Kind.Needs {
			if text, ok := c.inventory.Simulates[need]; ok && !c.inventory.Simulated {
				s.Simulates = text
				c.simulate(need, text)
			}
		}
		e := v.Effect(b.Step)
		s.Subject = e.Subject
		if e.Load != nil {
			s.Starts = &plan.LoadStart{Prefill: e.Load.Prefill, Runtime: e.Load.Runtime}
			s.Rough = e.Load.Runtime == 0 && !e.Load.Async && !v.Fixed(*e.Load)
		}
		if e.Settles != nil && !late {
			s.Longest = max(s.Duration, e.Settles.Most)
		}
		if (e.Boots != "" || e.Grows != "") && s.Duration > 0 {
			s.Rough, c.plan.Estimate.Boots = true, c.bootBasis()
		}
		if !late {
			c.finishPower(s.ID, e)
		}
		c.addEstimate(s)
		c.plan.Steps = append(c.plan.Steps, s)
		c.plan.Bound = append(c.plan.Bound, b)
	})
}

func (c finisher) simulate(need target.Capability, text string) {
	if c.plan.Target.Simulates == nil {
		c.plan.Target.Simulates = map[target.Capability]string{}
	}
	c.plan.Target.Simulates[need] = text
}

func (c finisher) finishPower(id int, e verb.Effect) {
	add := func(indexes []int, action string) {
		for _, i := range indexes {
			c.plan.Power = append(c.plan.Power, plan.PowerOperation{StepID: id, Node: c.inventory.Nodes[i].Name, Action: action})
		}
	}
	add(e.PowersOff, "off")
	add(e.PowersOn, "on")
}

func (c finisher) addEstimate(s plan.Step) {
	e := &c.plan.Estimate
	e.Rough = e.Rough || s.Rough
	e.Longer += max(0, s.Longest-s.Duration)
	if s.Branch > 0 {
		return // the head of the branches has the time of the longest
	}
	switch s.Phase {
	case plan.Setup:
		e.Setup += s.Duration
	case plan.Run:
		e.Run += s.Duration
	case plan.Teardown:
		e.Teardown += s.Duration
	}
	e.Total += s.Duration
}

func (c finisher) finishFootprint() {
	f := &c.plan.Footprint
	f.Replication = c.inventory.Replication
	snapshots := c.snapshotCounts()
	for _, g := range c.plan.Groups {
		f.VMs += g.CountFinal
		f.TouchedBytes += g.TouchedBytes * int64(g.CountFinal)
		f.SnapshotBytes += g.TouchedBytes * int64(g.CountFinal) * int64(snapshots[g.Name])
		for _, d := range g.Disks {
			f.DiskBytes += d.SizeBytes * int64(g.CountFinal)
		}
	}
	var longest plan.Footprint
	for _, start := range c.loadStarts() {
		p := c.plan.workloads[start.Workload]
		answer := p.loadPlan
		if start.Prefill {
			answer = p.fillPlan
		}
		if answer == nil {
			continue
		}
		addWritten(f, answer, start.Runtime, int64(start.vms))
		addWritten(&longest, answer, start.lasting.Longest(start.Runtime), int64(start.vms))
	}
	f.WrittenLastingBytes = longest.WrittenKnownBytes - f.WrittenKnownBytes
	f.WrittenLastingFreely = longest.WrittenFreely - f.WrittenFreely
}

// addWritten adds what one load writes on all its VMs.
func addWritten(f *plan.Footprint, answer *load.Plan, runtime time.Duration, vms int64) {
	bytes := answer.BytesWritten
	if runtime == 0 {
		runtime = answer.TakesMost
	}
	if bytes < 0 && answer.WriteRate > 0 && runtime > 0 {
		bytes = poissonBound(float64(answer.WriteRate)*runtime.Seconds(), float64(answer.BlockBytesMax))
	}
	if bytes >= 0 {
		f.WrittenKnownBytes += bytes * vms
		if f.WrittenBytes >= 0 {
			f.WrittenBytes = f.WrittenKnownBytes
		}
		return
	}
	f.WrittenBytes = -1
	f.WrittenFreely += runtime
	f.WrittenForever = f.WrittenForever || runtime == 0
}

// poissonBound is the upper bound of bytes written by random arrivals of blocks with the given mean: six standard
// deviations above it, which one run in a billion exceeds.
func poissonBound(mean, block float64) int64 {
	if block <= 0 {
		block = 1
	}
	return int64(mean + 6*math.Sqrt(mean/block)*block)
}

// loadStart is a load that a step begins.
type loadStart struct {
	verb.LoadSpec
	vms     int // of the group at that time
	lasting *plan.Lasting
}

// loadStarts returns every load that a step begins.
func (c *script) loadStarts() []loadStart {
	var ignored diag.List
	v := c.newView(&ignored)
	var out []loadStart
	c.walk(v, 1, func(i int, step verb.Step, late bool) {
		if e := v.Effect(step); e.Load != nil && !late {
			vms := v.VMsOf(e.Load.Workload)
			if e.Load.Prefill {
				vms = v.VMs(c.plan.workloads[e.Load.Workload].dataGroup())
			}
			out = append(out, loadStart{*e.Load, vms, c.lasting[i].planned()})
		}
	})
	return out
}

// snapshotCounts returns how many snapshots are taken of each VM of a group.
func (c *script) snapshotCounts() map[string]int {
	var ignored diag.List
	v := c.newView(&ignored)
	out := map[string]int{}
	c.walk(v, 1, func(_ int, step verb.Step, late bool) {
		if e := v.Effect(step); !late {
			out[e.Snapshot] += e.Snapshots
		}
	})
	return out
}

func (c finisher) finishUndo() {
	undo := &c.plan.Undo
	var off []string
	for _, p := range c.plan.Power {
		if p.Action == "off" && !slices.Contains(off, p.Node) {
			off = append(off, p.Node)
		}
	}
	if len(off) > 0 {
		*undo = append(*undo, "power on the nodes that this run powered off: "+diag.Quoted(off, 5))
	}
	for _, b := range slices.Backward(c.steps) {
		if _, ok := b.Step.(verb.Undoer); ok {
			if text := fmt.Sprintf("undo %s (line %d)", b.Kind.Name, b.Call.Pos.Line); !slices.Contains(*undo, text) {
				*undo = append(*undo, text) // once for all iterations of a repetition
			}
		}
	}
	if c.plan.Footprint.VMs > 0 {
		*undo = append(*undo, fmt.Sprintf("delete the %s of this run with disks and snapshots", textio.Plural(c.plan.Footprint.VMs, "VM")))
	}
}

// bootBasis returns the basis of the boot estimate; "" if no VM boots.
func (c finisher) bootBasis() string {
	var said []string
	for _, g := range c.plan.Groups {
		b, ok := c.inventory.Boots[g.Template]
		if !ok || g.CountFinal == 0 {
			continue
		}
		text := fmt.Sprintf("%s (%s)", unit.FormatDuration(b.Alone), b.Basis)
		if b.CPU > 0 {
			text = fmt.Sprintf("%s and %s of a processor (%s)", unit.FormatDuration(b.Alone), unit.FormatDuration(b.CPU), b.Basis)
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, ", ")
}
