package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
)

// request is what the child process gets; all of it is text from outside.
type request struct {
	File   string // as it is named in messages
	Source string
	Chosen Options
}

// response is what the child gives back: the rendered text and its tree, and the variables with their values.
type response struct {
	Rendered  string
	Root      *yamltree.Node // nil when the text could not be read
	Variables []Variable
	Presets   []string
	Preset    string
	Problems  diag.List
}

// compose does all that runs on hostile text with code of others: it renders the template and parses the YAML.
func compose(req request) response {
	lines := splitLines(req.Source)
	p := &parser{file: req.File, source: lines, sc: &Scenario{}}
	vars := p.rawSection(req.Source, "vars")
	presets := p.rawSection(req.Source, "presets")
	p.variables(vars, presets, req.Chosen)
	resp := response{Variables: p.sc.Variables, Presets: p.sc.Presets, Preset: p.sc.Preset}
	values := map[string]any{}
	complete := true
	for _, v := range p.sc.Variables {
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
	resp.Problems = p.list
	return resp
}

// tree parses YAML and reports what keeps it from being a scenario.
func (p *parser) tree(text string, place yamltree.Placer) *yamltree.Node {
	b := yamltree.Builder{Lines: splitLines(text), Place: place}
	if f := yamltree.Survey(b.Lines); f != nil {
		f.Line, f.Column, f.Width = place.Place(f.RenderedLine, f.Column)
		p.faults([]yamltree.Fault{*f})
		return nil
	}
	var y yaml.Node
	if err := yaml.Load([]byte(text), &y); err != nil {
		p.faults([]yamltree.Fault{b.FaultOf(err)})
		return nil
	}
	if y.Kind != yaml.DocumentNode || len(y.Content) == 0 {
		p.faults([]yamltree.Fault{{Code: "empty", Message: "the document is empty", Line: 1, Column: 1}})
		return nil
	}
	root := b.Build(y.Content[0])
	p.faults(b.Faults)
	if len(b.Faults) > 0 {
		return nil
	}
	return &root
}

func (p *parser) faults(faults []yamltree.Fault) {
	for _, f := range faults {
		d := p.diagnostic(f.Line, f.Column, f.Width, f.RenderedLine)
		d.Code, d.Message, d.Hint = f.Code, f.Message, f.Hint
		p.list.Add(d)
	}
}

// rawSection cuts a top-level section out of the raw text, which is not valid YAML as a whole, and parses it. The section
// ends at the next line that begins in the first column and is not a comment.
func (p *parser) rawSection(source, name string) *yamltree.Node {
	head := regexp.MustCompile(`(?m)^` + name + `[ \t]*:`)
	loc := head.FindStringIndex(source)
	if loc == nil {
		return nil
	}
	first := strings.Count(source[:loc[0]], "\n")
	end := first + 1
	for end < len(p.source) && (p.source[end] == "" || strings.ContainsRune(" \t#", rune(p.source[end][0]))) {
		end++
	}
	section := strings.Join(p.source[first:end], "\n") + "\n"
	if at := strings.Index(section, "{{"); at >= 0 {
		line := first + strings.Count(section[:at], "\n")
		column := strings.Index(p.source[line], "{{") + 1
		p.faults([]yamltree.Fault{{Code: "template-in-vars", Line: line + 1, Column: column, Width: 2,
			Message: fmt.Sprintf("the section %s is read before the template is rendered and cannot have {{ … }}", name)}})
		return nil
	}
	root := p.tree(section, offset(first))
	if root == nil || root.Kind != yamltree.Mapping || len(root.Items) < 2 || yamltree.IsNull(root.Items[1]) {
		return nil
	}
	return &root.Items[1]
}

// offset places a text that was cut out of the user's text as whole lines.
type offset int

func (o offset) Place(line, column int) (int, int, int) { return int(o) + line, column, 0 }

// splitLines cuts text into lines without their ends.
func splitLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}
