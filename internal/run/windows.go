package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// windowActsMax is how many steps get windows of their own at most; analysis bounds them, and what follows is not named.
const windowActsMax = 45

// nameAct notes a step of the run phase that windows of the report may be named after.
func (c *compiler) nameAct(b boundStep, v *View) {
	_, verb, _ := strings.Cut(b.kind.Name, ".")
	if b.phase != Run || strings.HasPrefix(verb, "Wait") || strings.HasSuffix(verb, "Wait") {
		return // steps that wait cut no window
	}
	group, workload := references(b.kind, b.step)
	if b.kind.Name == "workload.Start" && workload != "" {
		c.acts = append(c.acts, workload)
		return
	}
	subject := ""
	if hasNodes(b.kind) {
		if d, ok := b.step.(Describer); ok {
			subject = d.Effect(v).Subject
		}
		c.actsOfNodes = true
	}
	c.actsOfNodes = c.actsOfNodes || b.within != ""
	c.acts = append(c.acts, strings.TrimSpace(b.kind.Name+" "+cmp.Or(workload, subject, group)))
}

func hasNodes(k Kind) bool {
	return slices.ContainsFunc(k.Arguments(), func(a Argument) bool { return a.Type == "nodes" })
}

// windows lists the names of all windows that a run to the end can have, as analysis.Timeline.Windows makes them. Which of
// them it has depends on how long the steps take.
func (c *compiler) windows() []string {
	acts := slices.Clone(c.acts)
	numberActs(acts)
	names := []string{"run"}
	for i, act := range acts {
		if i == 0 {
			names = append(names, "before "+act)
		} else {
			names = append(names, "between "+acts[i-1]+" and "+act)
		}
		names = append(names, "during "+act)
	}
	if n := len(acts); n > 0 {
		names = append(names, "after "+acts[n-1])
	}
	return names
}

// numberActs tells steps with the same name apart: "Random Read", "Random Read (2)".
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

// windowShapes are how names of windows begin, beside "run".
var windowShapes = []string{"before ", "during ", "between ", "after "}

// checkWindows reports expectations about windows that no step of the run phase makes. Where steps are not known or very
// many, or a rehearsal has fewer nodes for windows to be named after, only names that no step could have are reported.
func (c *compiler) checkWindows() {
	exact := !c.actsUnknown && len(c.acts) <= windowActsMax && (c.options.Rehearse == 0 && !c.imagined || !c.actsOfNodes)
	names := c.windows()
	for _, r := range c.sc.Results {
		for _, x := range r.Expect {
			shaped := slices.ContainsFunc(windowShapes, func(s string) bool { return strings.HasPrefix(x.Window, s) })
			if x.Window == "" || slices.Contains(names, x.Window) || shaped && !exact {
				continue
			}
			d := diag.Diagnostic{Code: "unknown-window", Pos: x.Pos,
				Message: fmt.Sprintf("expectation %q of result %q: no step of the run phase makes a window %q", x.Text, r.Name, x.Window),
				Hint:    "there are " + quotedList(names)}
			if near := diag.Nearest(x.Window, names); near != "" {
				d.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.problems.Add(d)
		}
	}
}
