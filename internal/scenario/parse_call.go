package scenario

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// phase reads the steps of setup, run or teardown. Only the shape of a step is checked; its meaning is not known here.
func (p *parser) phase(f fields, name string, wanted bool) []Call {
	items := f.list(name)
	if n, ok := f.get(name); ok && wanted && len(items) == 0 && n.Kind == yamltree.Sequence {
		p.report(f.key[name], "no-steps", "", "the phase %q has no steps", name)
	}
	var calls []Call
	for _, item := range items {
		if c, ok := p.call(item, name); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// The arguments that hold steps.
const (
	branchesOf = "meta.Parallel branches"
	stepsOf    = "meta.Repeat steps"
)

// blocks reads the steps below a step: a list of lists, or one list.
func (p *parser) blocks(n yamltree.Node, name string, one bool) Blocks {
	out := Blocks{}
	lists := []yamltree.Node{n}
	if !one {
		lists = n.Items
		if n.Kind != yamltree.Sequence {
			p.report(n, "wrong-shape", "each branch is a list of steps", "%s is %s where a list of branches is wanted", name, quoteNode(n))
			return out
		}
	}
	for _, list := range lists {
		if list.Kind != yamltree.Sequence || len(list.Items) == 0 {
			p.report(list, "wrong-shape", `begin every step with "- "`, "%s holds %s where a list of steps is wanted", name, quoteNode(list))
			continue
		}
		var calls []Call
		for _, item := range list.Items {
			if c, ok := p.call(item, name); ok {
				calls = append(calls, c)
			}
		}
		out = append(out, calls)
	}
	return out
}

func (p *parser) call(item yamltree.Node, phase string) (Call, bool) {
	if item.Kind != yamltree.Mapping || len(item.Items) == 0 {
		hint := "write the name of the step, a colon, and its arguments below"
		if item.Kind == yamltree.Scalar && !yamltree.IsNull(item) {
			hint = fmt.Sprintf("write \"%s: {}\"", item.Text)
		}
		p.report(item, "wrong-shape", hint, "an entry of %s is %s where a step is wanted", phase, quoteNode(item))
		return Call{}, false
	}
	name, args := item.Items[0], item.Items[1]
	if len(item.Items) > 2 {
		second, hint := item.Items[2], `begin every step with "- "`
		if yamltree.IsNull(args) && !strings.Contains(second.Text, ".") {
			hint = fmt.Sprintf("indent the arguments of %q deeper than its name", name.Text)
		}
		p.report(second, "wrong-indent", hint, "%q must be indented below the step %q", second.Text, name.Text)
		return Call{}, false
	}
	if left, right, ok := strings.Cut(name.Text, "."); name.Kind != yamltree.Scalar || !ok || left == "" || right == "" {
		p.report(name, "bad-step-name", "for example workload.Start", "invalid step name: %s", quoteNode(name))
		return Call{}, false
	}
	c := Call{Name: name.Text, Pos: p.pos(name), Width: name.Width, RenderedLine: name.RenderedLine}
	f := p.mapping(args, name, "step "+name.Text, nil)
	for _, arg := range f.names {
		key, value := f.key[arg], f.value[arg]
		a := Argument{Name: arg, Pos: p.pos(key), ValuePos: p.pos(value), Width: value.Width, RenderedLine: value.RenderedLine}
		if c.Name+" "+arg == branchesOf || c.Name+" "+arg == stepsOf {
			a.Value = p.blocks(value, arg, c.Name+" "+arg == stepsOf)
		} else {
			a.Value = yamltree.AsAny(value)
		}
		c.Args = append(c.Args, a)
	}
	f.nodes()
	if n, ok := f.get("filename"); ok && c.Name == "playbook.Run" {
		p.wanted = append(p.wanted, wantedFile{name: f.text("filename"), at: n, what: f.what})
	}
	return c, true
}
