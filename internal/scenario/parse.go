package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// keys of each mapping. A test compares them with the JSON Schema.
var (
	topKeys = []string{"id", "name", "display_name", "summary", "description", "tags", "estimated_runtime", "vars",
		"presets", "vms", "workloads", "results", "setup", "run", "teardown"}
	topRequired = []string{"name", "display_name", "summary", "description", "estimated_runtime", "vms", "workloads",
		"results", "setup", "run"}
)

// Longest names, in characters. X-Ray refuses longer group names, because it builds VM names from them.
const (
	scenarioNameMax = 100
	groupNameMax    = 18
	entryNameMax    = 120
)

// parser turns a tree into a Scenario.
type parser struct {
	*reader
	sc     *Scenario
	wanted []wantedFile // files that the document names

	overlaid []overlaid // results that share a chart
}

// document reads the whole document. References between sections are checked when all of them are known.
func (p *parser) document(root yamltree.Node) {
	if root.Kind != yamltree.Mapping {
		p.report(root, "wrong-shape", "it begins with name:, display_name:, summary: …",
			"the document is %s where a mapping is wanted", root.Kind)
		return
	}
	at := yamltree.Node{Line: 1, Column: 1, Width: 1}
	if len(root.Items) > 0 {
		at = root.Items[0]
	}
	f := p.topFields(root, at)
	f.require(topRequired...)
	p.identity(f)
	p.groups(f)
	p.workloads(f)
	p.results(f)
	p.sc.Setup = p.phase(f, "setup", true)
	p.sc.Run = p.phase(f, "run", true)
	p.sc.Teardown = p.phase(f, "teardown", false)
	p.variablesUnused()
}

// topFields reads the keys of the whole document. X-Ray's reader ignores unknown keys, and users keep notes and anchors there, so
// they are warnings. An unknown key that is probably a misspelled required key is an error.
func (p *parser) topFields(root, at yamltree.Node) fields {
	known := yamltree.Node{Kind: yamltree.Mapping}
	var strange []yamltree.Node
	have := map[string]bool{}
	for i := 0; i+1 < len(root.Items); i += 2 {
		key := root.Items[i]
		have[key.Text] = true
		if key.Kind == yamltree.Scalar && !slices.Contains(topKeys, key.Text) {
			strange = append(strange, key, root.Items[i+1])
		} else {
			known.Items = append(known.Items, key, root.Items[i+1])
		}
	}
	for i := 0; i < len(strange); i += 2 {
		key, near := strange[i], diag.Nearest(strange[i].Text, topKeys)
		if slices.Contains(topRequired, near) && !have[near] {
			known.Items = append(known.Items, key, strange[i+1]) // reported as a misspelling
			continue
		}
		hint := "X-Ray ignores it too"
		if near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.warn(key, "unknown-key", hint, "the scenario has no key %q, so it is ignored", shorten(key.Text))
	}
	return p.mapping(known, at, "the scenario", topKeys)
}

func (p *parser) identity(f fields) {
	sc := p.sc
	sc.ID, sc.Name, sc.DisplayName = f.text("id"), f.text("name"), f.text("display_name")
	sc.Summary, sc.Description = f.text("summary"), f.text("description")
	sc.Tags = f.texts("tags")
	sc.EstimatedRuntime = f.duration("estimated_runtime")
	if n, ok := f.get("name"); ok && n.Kind == yamltree.Scalar {
		p.checkName(n, "the scenario", scenarioNameMax)
		if strings.ContainsFunc(n.Text, badInFileName) {
			p.report(n, "bad-name", "use letters, digits, - and _",
				"the name of the scenario becomes part of file names and cannot be %q", n.Text)
		}
	}
}

func badInFileName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" _-.+()", r)
}

// entry is one "- name: {…}" of a section.
type entry struct {
	name  yamltree.Node
	value yamltree.Node
}

// section reads a list of named entries. Entries of the same name are an error, and the later one is dropped.
func (p *parser) section(f fields, name string) []entry {
	var out []entry
	seen := map[string]yamltree.Node{}
	for _, item := range f.list(name) {
		if item.Kind != yamltree.Mapping || len(item.Items) == 0 {
			p.report(item, "wrong-shape", fmt.Sprintf("write %q", "- name:")+" and its keys below, indented",
				"an entry of %s is %s where a name with its keys is wanted", name, quoteNode(item))
			continue
		}
		if p.misindented(item, name) {
			continue
		}
		for i := 0; i+1 < len(item.Items); i += 2 {
			e := entry{name: item.Items[i], value: item.Items[i+1]}
			if first, twice := seen[e.name.Text]; twice {
				p.report(e.name, "duplicate-name", "", "%s has %q twice; the first is in line %d", name,
					e.name.Text, first.Line)
				continue
			}
			seen[e.name.Text] = e.name
			out = append(out, e)
		}
	}
	return out
}

// misindented recognises the most common mistake: the keys of an entry are indented no deeper than its name.
func (p *parser) misindented(item yamltree.Node, section string) bool {
	if len(item.Items) < 4 || !yamltree.IsNull(item.Items[1]) {
		return false
	}
	p.report(item.Items[2], "wrong-indent", fmt.Sprintf("indent the keys of %q deeper than the name", item.Items[0].Text),
		"%q must be indented below the name %q of this entry of %s", item.Items[2].Text, item.Items[0].Text, section)
	return true
}

// tags finds the expressions of a template.
var tags = regexp.MustCompile(`(?s)\{[{%].*?[%}]\}`)

// variablesUnused warns about variables that no tag of the template mentions.
func (p *parser) variablesUnused() {
	if len(p.sc.Variables) == 0 {
		return
	}
	used := map[string]bool{}
	for _, tag := range tags.FindAllString(strings.Join(p.source, "\n"), -1) {
		for _, word := range strings.FieldsFunc(tag, func(r rune) bool { return !isIdentifier("_" + string(r)) }) {
			used[word] = true
		}
	}
	for _, v := range p.sc.Variables {
		if !used[v.Name] {
			n := yamltree.Node{Line: v.Pos.Line, Column: v.Pos.Column, Width: len(v.Name)}
			p.warn(n, "unused-variable", "", "the variable %q is never used", v.Name)
		}
	}
}
