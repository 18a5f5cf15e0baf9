package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// Repeat is one repetition that lasts for a time. It is shared by all its steps.
type Repeat struct {
	head    Bound
	Planned time.Duration // with the time factor of the plan
}

// length returns the time within which iterations may begin.
func (r *Repeat) length(factor float64) time.Duration {
	return r.head.Rebind(factor).(verb.Blocker).Block().Duration
}

// turn places a step in one iteration of a repeat.
type turn struct {
	repeat    *Repeat
	iteration int // from 1
}

// Pace tracks repeats over time and decides which iterations are skipped. The zero value is ready.
type Pace struct {
	began map[*Repeat]time.Duration
	at    map[*Repeat]int
	Over  map[*Repeat]bool
}

// Skips reports whether step b, which would begin at now, belongs to an iteration that would begin too late. It is called
// for every step in order. The first iteration always runs.
func (p *Pace) Skips(b Bound, now time.Duration, length func(*Repeat) time.Duration) bool {
	if p.Over == nil {
		p.began, p.at, p.Over = map[*Repeat]time.Duration{}, map[*Repeat]int{}, map[*Repeat]bool{}
	}
	for _, t := range b.turns {
		switch r := t.repeat; {
		case p.Over[r]:
			return true
		case t.iteration == p.at[r]:
		case t.iteration > 1 && now-p.began[r] >= length(r):
			p.Over[r] = true
			return true
		case t.iteration == 1:
			p.began[r], p.at[r] = now, 1
		default:
			p.at[r] = t.iteration
		}
	}
	return false
}

// walk plays the steps in order on the state v with a time factor and shows each before it is played. Branches begin at the same
// time, and the next step begins when the last branch has ended. Steps that are too late for their repeat are shown with late set
// and not played. It returns how long each step takes; a head of branches takes as long as the longest.
func (c *script) walk(v *verb.View, factor float64, visit func(i int, step verb.Step, late bool)) []time.Duration {
	lengths := make([]time.Duration, len(c.steps))
	// Steps that were bound with the plan's own factor are played with factor 1.
	length := func(r *Repeat) time.Duration { return r.length(min(factor, c.factor)) }
	var p Pace
	head, end := -1, time.Duration(0) // of the current branches, and when the longest so far ends
	var began time.Duration
	for i, b := range c.steps {
		if head >= 0 && b.branch != c.steps[i-1].branch { // a branch has ended
			end = max(end, v.Clock)
			v.Clock = began
			if b.branch == 0 || b.Parallel {
				v.Clock, lengths[head], head = end, end-began, -1
			}
		}
		step := b.Step
		if factor < 1 {
			step = b.Rebind(factor)
		}
		late := p.Skips(b, v.Clock, length)
		visit(i, step, late)
		if late {
			continue
		}
		v.Factor = min(factor, c.factor)
		c.extend(v, i, v.Factor)
		start := v.Clock
		v.Play(step)
		lengths[i] = v.Clock - start
		if b.Parallel {
			head, began, end = i, start, start
		}
	}
	if head >= 0 {
		v.Clock = max(end, v.Clock)
		lengths[head] = v.Clock - began
	}
	return lengths
}

// bindBlock binds the steps below a block.
func (c *binder) bindBlock(v *verb.View, b Bound, block verb.Block, depth int) {
	problems := &verb.Problems{List: &c.problems, Scenario: c.sc, Call: b.Call}
	switch {
	case b.phase == plan.Teardown:
		problems.Hint("", "block-in-teardown", "write the steps one below the other: each runs, whatever the others do",
			b.Kind.Name+" is not allowed in teardown")
	case depth >= expandDepthMax:
		problems.Errorf("", "too-deep", "%s is nested too deep", b.Kind.Name)
	case block.Parallel && b.branch > 0:
		problems.Errorf("", "nested-parallel", "%s cannot be nested", b.Kind.Name)
	case block.Parallel:
		c.bindBranches(v, b, block, depth)
	default:
		c.bindIterations(v, b, block, depth)
	}
}

// bindIterations unrolls a repetition. A problem that occurs in several iterations is reported once.
func (c *binder) bindIterations(v *verb.View, b Bound, block verb.Block, depth int) {
	before, first := countErrors(c.problems), len(c.problems)
	most := block.Count
	var timed *Repeat
	if block.Duration > 0 {
		timed = &Repeat{head: b}
		c.actsUnknown = c.actsUnknown || b.phase == plan.Run // their number is unknown
	}
	for n := 1; n == 1 || n <= most; n++ {
		from := v.Clock
		for _, call := range block.Branches[0] {
			next := Bound{Call: call, phase: b.phase, Within: b.Kind.Name, branch: b.branch, turns: b.turns,
				iteration: strings.TrimPrefix(fmt.Sprintf("%s.%d", b.iteration, n), ".")}
			if timed != nil {
				next.turns = append(slices.Clone(b.turns), turn{timed, n})
			}
			c.bindCall(v, next, depth+1)
		}
		c.problems = append(c.problems[:first:first], distinctProblems(c.problems[first:])...)
		if countErrors(c.problems) > before || len(c.steps) > stepsMax {
			return
		}
		if n == 1 && timed != nil {
			fit := iterationsThatFit(block.Duration, v.Clock-from)
			if most == 0 && fit == 0 {
				problems := &verb.Problems{List: &c.problems, Scenario: c.sc, Call: b.Call}
				problems.Hint("duration_secs", "repeat-length", "give count too, or add test.Wait",
					"no step of the repetition says how long it takes, so it cannot be planned by time alone")
				return
			}
			if most == 0 || fit > 0 && fit < most {
				most = fit
			}
		}
	}
}

// iterationsThatFit returns how many iterations can begin within duration when each takes at least least; 0: not known.
func iterationsThatFit(duration, least time.Duration) int {
	if least <= 0 {
		return 0
	}
	return int(min((duration+least-1)/least, stepsMax+1))
}

func distinctProblems(list diag.List) diag.List {
	var out diag.List
	for _, d := range list {
		if !slices.ContainsFunc(out, func(o diag.Diagnostic) bool {
			return o.Pos == d.Pos && o.Code == d.Code && o.Message == d.Message
		}) {
			out = append(out, d)
		}
	}
	return out
}

// bindBranches binds each branch to the state before the block, because branches are independent of each other, and refuses
// branches that change the same thing.
func (c *binder) bindBranches(v *verb.View, b Bound, block verb.Block, depth int) {
	b.Parallel = true
	c.steps = append(c.steps, b)
	end := v.Clock
	after := v.Clone()
	owners := map[string]int{}
	acts := len(c.acts)
	for n, calls := range block.Branches {
		branch := v.Clone()
		branch.Branch = true
		for _, call := range calls {
			next := Bound{Call: call, phase: b.phase, Within: b.Kind.Name, branch: n + 1, turns: b.turns, iteration: b.iteration}
			from := len(c.steps)
			c.bindCall(branch, next, depth+1)
			for _, bound := range c.steps[from:] {
				c.claim(owners, branch, bound, n+1)
			}
		}
		end = max(end, branch.Clock)
		after.Merge(branch)
	}
	*v = *after
	v.Clock = end
	if b.phase == plan.Run && len(c.acts) > acts+1 {
		c.actsUnknown = true // their order is unknown
	}
}

// claim notes what a step of a branch changes, and reports conflicts with other branches.
func (c *binder) claim(owners map[string]int, v *verb.View, b Bound, branch int) {
	problems := &verb.Problems{List: &c.problems, Scenario: c.sc, Call: b.Call}
	effect := v.Effect(b.Step)
	for _, thing := range thingsOf(effect, c.inventory.Nodes) {
		if other, taken := owners[thing]; taken && other != branch {
			problems.Hint("", "parallel-conflict", "put both into one branch, or one of them before or behind the branches",
				fmt.Sprintf("branches %d and %d both change %s", other, branch, thing))
			continue
		}
		owners[thing] = branch
	}
	if effect.CleansUp {
		problems.Errorf("", "parallel-conflict", "%s takes away what other branches work on", b.Kind.Name)
	}
}

// thingsOf names what an effect changes permanently.
func thingsOf(e verb.Effect, nodes []target.Node) []string {
	var out []string
	for _, group := range []string{e.Deploys, e.Grows, e.Changes, e.Snapshot} {
		if group != "" {
			out = append(out, fmt.Sprintf("the VMs of group %q", group))
		}
	}
	if e.SetsHA {
		out = append(out, "whether VMs start again after a node failure")
	}
	if e.Load != nil {
		out = append(out, fmt.Sprintf("the load of workload %q", e.Load.Workload))
	}
	if e.Stops != "" {
		out = append(out, fmt.Sprintf("the load of workload %q", e.Stops))
	}
	for _, i := range slices.Concat(e.PowersOff, e.PowersOn) {
		out = append(out, fmt.Sprintf("the power of node %d (%s)", i, nodes[i].Name))
	}
	return out
}
