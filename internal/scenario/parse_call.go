package scenario

import (
	"fmt"
	"strings"
)

// phase reads the steps of setup, run or teardown. What a step means is not known here; only its shape is checked.
func (p *parser) phase(f fields, name string, wanted bool) []Call {
	items := f.list(name)
	if n, ok := f.get(name); ok && wanted && len(items) == 0 && n.Kind == sequenceNode {
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

func (p *parser) call(item node, phase string) (Call, bool) {
	if item.Kind != mappingNode || len(item.Items) == 0 {
		hint := "write the name of the step, a colon, and its arguments below"
		if item.Kind == scalarNode && !isNull(item) {
			hint = fmt.Sprintf("write \"%s: {}\"", item.Text)
		}
		p.report(item, "wrong-shape", hint, "an entry of %s is %s where a step is wanted", phase, quoteNode(item))
		return Call{}, false
	}
	name, args := item.Items[0], item.Items[1]
	if len(item.Items) > 2 {
		second, hint := item.Items[2], `begin every step with "- "`
		if isNull(args) && !strings.Contains(second.Text, ".") {
			hint = fmt.Sprintf("indent the arguments of %q deeper than its name", name.Text)
		}
		p.report(second, "wrong-indent", hint, "%q stands beside the step %q, not below it", second.Text, name.Text)
		return Call{}, false
	}
	if left, right, ok := strings.Cut(name.Text, "."); name.Kind != scalarNode || !ok || left == "" || right == "" {
		p.report(name, "bad-step-name", "for example workload.Start", "%s is no name of a step", quoteNode(name))
		return Call{}, false
	}
	c := Call{Name: name.Text, Pos: p.pos(name), Width: name.Width, RenderedLine: name.RenderedLine}
	f := p.fields(args, name, "step "+name.Text, nil)
	for _, arg := range f.names {
		key, value := f.key[arg], f.value[arg]
		c.Args = append(c.Args, Argument{Name: arg, Value: asAny(value), Pos: p.pos(key), ValuePos: p.pos(value),
			Width: value.Width, RenderedLine: value.RenderedLine})
	}
	if n, ok := f.get("filename"); ok && c.Name == "playbook.Run" {
		p.wanted = append(p.wanted, wantedFile{name: f.text("filename"), at: n, what: f.what})
	}
	return c, true
}
