package planner

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

// A rehearsal shortens loads and waits, but not a power cut, a migration or a clone. A scenario times its loads so that they
// cover such steps. The rehearsal keeps that: if a load outlasts later steps by the scenario's own durations, it ends only when
// these steps are over, however long they take. Rejected: a fixed grace period, which is too short on a slow target and too long
// on a fast one.

// lastingPerStep bounds the extension of a load for each step of unpredictable duration. It is also the floor of timeouts,
// because the awaited operation may take that long in any rehearsal.
const lastingPerStep = 5 * time.Minute

// lasting is a plan.Lasting under construction.
type lasting struct {
	over     []lastingOver
	most     time.Duration
	unsteady int // steps during the load that take an unpredictable time
}

type lastingOver struct {
	plan.LastingOver
	rest time.Duration // After in the scenario, before it was scaled
	// whole: the scenario has the load outlast the step, which ends with another load. That load has a least length in a
	// rehearsal, so the step may take longer than its scaled length.
	whole bool
}

// said returns the entry in the plan; nil for a load that keeps its runtime.
func (l *lasting) planned() *plan.Lasting {
	if l == nil {
		return nil
	}
	out := &plan.Lasting{Most: l.most}
	for _, o := range l.over {
		out.Over = append(out.Over, o.LastingOver)
	}
	return out
}

// plannedStep is a step on the clock of a plan.
type plannedStep struct {
	from, to time.Duration
	loadEnds time.Duration // of the load that it starts
	effect   verb.Effect
	late     bool // skipped: too late for its repeat
}

// plannedSteps plays all steps as they are bound at present.
func (c *script) plannedSteps() []plannedStep {
	var ignored diag.List
	v := c.newView(&ignored)
	v.Sizes = c.loadSizes(c.factor)
	out := make([]plannedStep, len(c.steps))
	lengths := c.walk(v, 1, func(i int, step verb.Step, late bool) {
		out[i].from, out[i].late = v.Clock, late
		if late {
			return
		}
		out[i].effect = v.Effect(step)
		if l := out[i].effect.Load; l != nil {
			out[i].loadEnds = v.Clock + v.Lasts(*l)
		}
	})
	for i := range out {
		out[i].to = out[i].from + lengths[i]
	}
	return out
}

// findLasting notes which loads the scenario runs until later steps end. It is called before any time is scaled.
func (c *script) findLasting() {
	steps := c.plannedSteps()
	found := map[int]*lasting{}
	for i := range steps {
		l := steps[i].effect.Load
		if l == nil || l.Prefill || l.Runtime == 0 || !l.Async && c.steps[i].branch == 0 {
			continue
		}
		s := meanwhile{c: c, steps: steps, start: i, load: *l, ends: steps[i].loadEnds}
		s.cutShort()
		if over := s.over(); len(over) > 0 {
			found[i] = &lasting{over: over, unsteady: s.unsteady()}
		}
	}
	c.lasting = found
}

// meanwhile examines the steps that begin while a load runs.
type meanwhile struct {
	c     *script
	steps []plannedStep
	start int // index of the step that starts the load
	load  verb.LoadSpec
	ends  time.Duration
	halt  int // index of the step that takes the load's VMs away, 0 without one
}

// cutShort finds the step that ends the load before its time. A load is stopped at the beginning of a step. If a step switches
// off or deletes its VMs, the load lasts over that step, because it must be running at the cut.
func (m *meanwhile) cutShort() {
	w, _ := m.c.sc.Workload(m.load.Workload)
	for j := m.start + 1; j < len(m.steps); j++ {
		later := m.steps[j]
		switch {
		case later.late || later.from >= m.ends:
		case later.effect.Stops == m.load.Workload:
			m.ends = later.from
		case later.effect.AllOff(w.Group):
			m.ends, m.halt = min(m.ends, later.to), j
			return
		}
	}
}

// covers reports whether a step begins while the load runs: a step after its start or, in branches, parallel to it.
func (m meanwhile) covers(j int) bool {
	s, own := m.steps[j], m.steps[m.start]
	if j == m.start || s.late || m.c.steps[j].phase == plan.Teardown || s.from >= m.ends && j != m.halt {
		return false
	}
	if m.halt > 0 && j > m.halt && m.c.steps[m.halt].branch == 0 {
		return false // begins after the VMs are gone, even if the plan assumes that the cut takes no time
	}
	head, end := m.c.block(m.start)
	beside := j > head && j < end && m.c.steps[j].branch != m.c.steps[m.start].branch
	if beside {
		return s.from >= own.from || s.to > own.from
	}
	return j > m.start && m.load.Async
}

// block returns the index of the head of the branches that contain step i, and the index after them; i twice for none.
func (c *script) block(i int) (head, end int) {
	if c.steps[i].branch == 0 {
		return i, i
	}
	for head = i; !c.steps[head].Parallel; head-- {
	}
	return head, c.blockEnd(head)
}

// blockEnd returns the index after the branches of a head.
func (c *script) blockEnd(head int) int {
	end := head + 1
	for end < len(c.steps) && c.steps[end].branch > 0 {
		end++
	}
	return end
}

// last returns the last step of a branch in a range that the load covers, -1 without one.
func (m meanwhile) last(from, to, branch int) int {
	for j := to - 1; j >= from; j-- {
		if m.c.steps[j].branch == branch && m.covers(j) {
			return j
		}
	}
	return -1
}

// over returns the last steps that the load covers: one outside branches or, if the load ends while branches run in
// parallel, one of each branch.
func (m meanwhile) over() []lastingOver {
	head, end := m.c.block(m.start)
	if j := m.last(max(end, m.start), len(m.steps), 0); j >= 0 {
		return m.overStep(j)
	}
	if end > head {
		return m.overBranches(head)
	}
	return nil
}

func (m meanwhile) overStep(j int) []lastingOver {
	step := m.steps[j]
	out := lastingOver{LastingOver: plan.LastingOver{Step: j + 1, Name: m.c.steps[j].Kind.Name}}
	switch {
	case m.c.steps[j].Parallel:
		return m.overBranches(j)
	case step.to <= m.ends && !m.endsByLoad(j):
	default:
		out.Partly, out.rest, out.whole = true, min(step.to, m.ends)-step.from, step.to <= m.ends
	}
	return []lastingOver{out}
}

// endsByLoad reports whether a step ends with a load that has a runtime and may itself be extended over steps: two loads
// that are each extended until the other ends would wait for each other.
func (m meanwhile) endsByLoad(j int) bool {
	e := m.steps[j].effect
	if e.Load != nil {
		return !e.Load.Async && e.Load.Runtime > 0
	}
	return e.Awaits != "" && slices.ContainsFunc(m.steps, func(s plannedStep) bool {
		l := s.effect.Load
		return l != nil && l.Workload == e.Awaits && !l.Prefill && l.Runtime > 0
	})
}

func (m meanwhile) overBranches(head int) []lastingOver {
	var out []lastingOver
	end := m.c.blockEnd(head)
	for branch := 1; branch <= m.c.steps[end-1].branch; branch++ {
		if j := m.last(head+1, end, branch); j >= 0 {
			out = append(out, m.overStep(j)...)
		}
	}
	return out
}

// unsteady counts the steps during the load that take an unpredictable time.
func (m meanwhile) unsteady() int {
	count := 0
	for j := range m.steps {
		if m.covers(j) && !m.c.steps[j].Parallel && !m.c.steps[j].Kind.KeepsTime() && !m.endsByLoad(j) {
			count++
		}
	}
	return count
}

// extend extends the loads of a view as far as the current step requires.
func (c *script) extend(v *verb.View, i int, factor float64) {
	for start, l := range c.lasting {
		for _, over := range l.over {
			if over.Step != i+1 || !over.Partly {
				continue
			}
			_, workload := c.steps[start].Kind.References(c.steps[start].Step)
			v.Prolong(workload, v.Clock+scaleRest(over.rest, factor))
		}
	}
}

func scaleRest(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * min(factor, 1)).Round(time.Millisecond)
}

// lastingLeast is by how much, in the plan itself, a load must end too early if all steps keep to their times.
const lastingLeast = 100 * time.Millisecond

// keepLasting keeps the extensions that matter with the chosen time factor: if some step takes an unpredictable time, or if the
// minimum lengths of waits make a load end too early in the plan itself.
func (c *script) keepLasting() {
	if len(c.lasting) == 0 {
		return
	}
	steps := c.plannedSteps()
	for i, l := range c.lasting {
		var late time.Duration
		for n := range l.over {
			over := &l.over[n]
			over.After = scaleRest(over.rest, c.factor)
			if step := steps[over.Step-1]; over.whole {
				over.After = max(over.After, step.to-step.from)
			}
			end := steps[over.Step-1].to
			if over.Partly {
				end = steps[over.Step-1].from + over.After
			}
			late = max(late, end-steps[i].loadEnds)
		}
		l.most = (late + time.Duration(l.unsteady)*lastingPerStep).Truncate(time.Second) + time.Second
		if l.unsteady == 0 && late < lastingLeast {
			delete(c.lasting, i)
		}
	}
	c.noteLasting(steps)
}

// noteLasting adds notes about the extended loads, one for each workload.
func (c *script) noteLasting(steps []plannedStep) {
	var noted []string
	for i := range c.steps {
		l := c.lasting[i]
		if l == nil || slices.Contains(noted, steps[i].effect.Load.Workload) {
			continue
		}
		workload := steps[i].effect.Load.Workload
		noted = append(noted, workload)
		c.note("%s runs %s, extended by up to %s until %s (platform operations are not scaled in a rehearsal)",
			workload, unit.FormatDuration(steps[i].effect.Load.Runtime), unit.FormatDuration(l.most), l.planned())
	}
}
