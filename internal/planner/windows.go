package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
)

// windowActsMax is how many steps get separate windows; analysis bounds them, and later steps are not named.
const windowActsMax = 45

// act is a step of the run phase that windows are named after.
type act struct {
	name string
	step int // index in script.steps; -1: the step is wrong
}

// nameAct notes a step of the run phase that windows of the report may be named after. The name is the workload that it
// starts, otherwise the step and its subject in the scenario: a workload, a group, or nodes as written, because node names
// differ between targets.
func (c *binder) nameAct(v *verb.View, b Bound, index int) {
	if b.phase != plan.Run || b.Kind.Waits {
		return
	}
	group, workload := b.Kind.References(b.Step)
	nodes := strings.Join(strings.Fields(b.Kind.NodesWritten(b.Step)), "")
	name := strings.TrimSpace(b.Kind.Name + " " + cmp.Or(workload, nodes, group))
	c.actsOfNodes = c.actsOfNodes || b.expanded
	c.acts = append(c.acts, act{cmp.Or(v.Effect(b.Step).Starts(), name), index})
}

// actNames returns the names of all acts, with numbers for equal names: "Load", "Load (2)".
func (c *binder) actNames() []string {
	names := make([]string, len(c.acts))
	for i, a := range c.acts {
		names[i] = a.name
	}
	numberActs(names)
	return names
}

// labels returns the names of acts by the index of their step.
func (c *binder) labels() map[int]string {
	out := map[int]string{}
	for i, name := range c.actNames() {
		out[c.acts[i].step] = name
	}
	return out
}

// windows lists the names of the windows that a completed run can have, as analysis.Timeline.Windows makes them, for the first
// acts. Which of them exist depends on how long the steps take.
func (c *binder) windows() []string {
	acts := c.actNames()
	complete := len(acts) <= windowActsMax
	acts = acts[:min(len(acts), windowActsMax)]
	names := []string{"run"}
	for i, act := range acts {
		if i == 0 {
			names = append(names, "before "+act)
		} else {
			names = append(names, "between "+acts[i-1]+" and "+act)
		}
		names = append(names, "during "+act)
	}
	if n := len(acts); n > 0 && complete {
		names = append(names, "after "+acts[n-1])
	}
	return names
}

// numberActs makes equal step names unique: "Random Read", "Random Read (2)".
func numberActs(acts []string) {
	count, taken := map[string]int{}, map[string]bool{}
	for _, a := range acts {
		taken[a] = true
	}
	for i, act := range acts {
		if count[act]++; count[act] == 1 {
			continue
		}
		name := fmt.Sprintf("%s (%d)", act, count[act])
		for taken[name] { // a workload may itself be called "Random Read (2)"
			count[act]++
			name = fmt.Sprintf("%s (%d)", act, count[act])
		}
		acts[i], taken[name] = name, true
	}
}

// windowShapes are the prefixes of window names, in addition to "run".
var windowShapes = []string{"before ", "during ", "between ", "after "}

// windowsShownMax bounds how many windows a message names; the JSON of a plan has all.
const windowsShownMax = 24

// checkWindows reports thresholds of windows that no step of the run phase makes. If steps are unknown or very many, or depend on
// the number of nodes, only names that no step could have are reported.
func (c *binder) checkWindows() {
	exact := !c.actsUnknown && len(c.acts) <= windowActsMax && (c.options.Rehearse == 0 && !c.dry || !c.actsOfNodes)
	names := c.windows()
	for _, r := range c.sc.Results {
		for _, x := range r.Expect {
			c.checkEvent(&r, &x, exact)
			shaped := slices.ContainsFunc(windowShapes, func(s string) bool { return strings.HasPrefix(x.Window, s) })
			if x.Window == "" || slices.Contains(names, x.Window) || shaped && !exact {
				continue
			}
			c.unknownName(diag.Diagnostic{Code: "unknown-window", Pos: x.WindowPos,
				Message: fmt.Sprintf("threshold %q of result %q: no step of the run phase makes a window %q", x.Text, r.Name, x.Window)}, x.Window, names)
		}
	}
}

// lossesOfVMs are events that no step causes.
var lossesOfVMs = []string{"agent-lost", "vm-stopped"}

// checkEvent reports the threshold of an event that cannot happen.
func (c *binder) checkEvent(r *scenario.Result, x *scenario.Threshold, exact bool) {
	names := append(c.actNames(), lossesOfVMs...)
	if x.Event == "" || slices.Contains(names, x.Event) || !exact {
		return
	}
	c.unknownName(diag.Diagnostic{Code: "unknown-event", Pos: x.WindowPos,
		Message: fmt.Sprintf("threshold %q of result %q: no step of the run phase is called %q", x.Text, r.Name, x.Event)}, x.Event, names)
}

// unknownName reports a name that is not among those that exist, with the nearest of them.
func (c *binder) unknownName(d diag.Diagnostic, name string, names []string) {
	d.Hint = "there are " + diag.Quoted(names, windowsShownMax)
	if near := diag.Nearest(name, names); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.problems.Add(d)
}
