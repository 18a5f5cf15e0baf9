package scenario

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// request is the input of the child process; all of it is untrusted text.
type request struct {
	File   string // its name in messages
	Source string
	Chosen Options
}

// response is what the child returns: the rendered text and its tree, and the variables with their values.
type response struct {
	Rendered string
	Root     *yamltree.Node // nil when the text could not be read
	Inputs   Inputs
	Problems diag.List
}

// compose does all work that runs third-party code on untrusted text: it renders the template and parses the YAML.
func compose(req request) response {
	lines := splitLines(req.Source)
	p := inputParser{reader: &reader{file: req.File, source: lines}}
	vars := p.rawSection(req.Source, "vars")
	presets := p.rawSection(req.Source, "presets")
	p.variables(vars, presets, req.Chosen)
	resp := response{Inputs: p.Inputs}
	values := map[string]any{}
	complete := true
	for _, v := range p.Variables {
		values[v.Name] = v.Value
		complete = complete && v.Value != nil
	}
	if complete {
		rendered, faults := render(req.Source, values)
		p.faults(faults)
		if len(faults) == 0 {
			resp.Rendered = rendered.out.Text
			p.rendered = splitLines(resp.Rendered)
			resp.Root = p.tree(resp.Rendered, rendered)
		}
	}
	resp.Problems = p.problems
	return resp
}
