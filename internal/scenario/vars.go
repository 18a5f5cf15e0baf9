package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

var (
	varKeys    = []string{"default", "min", "max", "options", "display_name", "description"}
	presetKeys = []string{"vars", "display_name", "description"}
)

// inputParser reads the choices that a scenario offers.
type inputParser struct {
	*reader
	Inputs
}

// variables reads the sections vars and presets, which are plain YAML in the raw text, and chooses the values: the
// command line before the preset before the default.
func (p *inputParser) variables(vars, presets *yamltree.Node, chosen Options) {
	if vars != nil {
		f := p.mapping(*vars, *vars, "vars", nil)
		for _, name := range f.names {
			p.Variables = append(p.Variables, p.variable(f.key[name], f.value[name]))
		}
	}
	p.presets(presets, chosen.Preset)
	p.overrides(chosen.Set)
	for i := range p.Variables {
		v := &p.Variables[i]
		if v.Value == nil {
			v.Value = v.Default
		}
	}
}

func (p *inputParser) variable(key, value yamltree.Node) Variable {
	v := Variable{Name: key.Text, Origin: "default", Hidden: strings.HasPrefix(key.Text, "_"), Pos: p.pos(key)}
	p.checkName(key, "the variable", entryNameMax)
	if !isIdentifier(key.Text) {
		p.report(key, "bad-name", "use letters, digits and _", "the name of a variable cannot be %q", key.Text)
	}
	f := p.mapping(value, key, fmt.Sprintf("variable %q", key.Text), varKeys)
	f.require("default")
	v.DisplayName, v.Description = f.text("display_name"), f.text("description")
	v.Default = p.plainValue(f, "default")
	v.Min, v.Max = p.plainValue(f, "min"), p.plainValue(f, "max")
	for _, n := range f.list("options") {
		if n.Kind != yamltree.Scalar || yamltree.IsNull(n) {
			p.report(n, "wrong-type", "", "%s: an option is %s where a single value is wanted", f.what, quoteNode(n))
			continue
		}
		v.Options = append(v.Options, yamltree.Resolve(n))
	}
	if n, ok := f.get("default"); ok && v.Default != nil {
		p.checkValue(&v, v.Default, n, "default")
	}
	return v
}

// plainValue reads a single value. A list of one entry, which X-Ray's menus write for default, counts as that entry.
func (p *inputParser) plainValue(f fields, name string) any {
	n, ok := f.get(name)
	if !ok {
		return nil
	}
	if n.Kind == yamltree.Sequence && len(n.Items) == 1 {
		n = n.Items[0]
	}
	if n.Kind != yamltree.Scalar || yamltree.IsNull(n) {
		p.report(n, "wrong-type", "", "%s: %s is %s where a single value is wanted", f.what, name, quoteNode(n))
		return nil
	}
	return yamltree.Resolve(n)
}

// checkValue reports a value outside of the bounds or options of its variable.
func (p *inputParser) checkValue(v *Variable, value any, at yamltree.Node, origin string) bool {
	if why := v.refuses(value); why != "" {
		p.report(at, "bad-value", v.allowed(), "variable %q: the value %v (%s) %s", v.Name, value, origin, why)
		return false
	}
	return true
}

// refuses returns why a value is not allowed, or "" if it is.
func (v *Variable) refuses(value any) string {
	for _, bound := range []struct {
		limit any
		sign  int
		words string
	}{{v.Min, -1, "less than the minimum"}, {v.Max, 1, "more than the maximum"}} {
		c, ok := compareValues(value, bound.limit)
		switch {
		case bound.limit == nil:
		case !ok:
			return fmt.Sprintf("cannot be compared with the bound %v", bound.limit)
		case c == bound.sign:
			return fmt.Sprintf("is %s %v", bound.words, bound.limit)
		}
	}
	same := func(option any) bool { c, ok := compareValues(value, option); return ok && c == 0 }
	if len(v.Options) > 0 && !slices.ContainsFunc(v.Options, same) {
		return "is not among the options"
	}
	return ""
}

func (v *Variable) allowed() string {
	var parts []string
	if v.Min != nil || v.Max != nil {
		parts = append(parts, fmt.Sprintf("from %s to %s", orAny(v.Min), orAny(v.Max)))
	}
	var options []string
	for _, o := range v.Options {
		options = append(options, fmt.Sprint(o))
	}
	if len(options) > 0 {
		parts = append(parts, "one of "+strings.Join(options, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "allowed: " + strings.Join(parts, "; ")
}

func orAny(v any) string {
	if v == nil {
		return "any"
	}
	return fmt.Sprint(v)
}

// compareValues orders two numbers, two texts or two booleans; other pairs cannot be compared.
func compareValues(a, b any) (int, bool) {
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if okX && okY {
		return cmp.Compare(x, y), true
	}
	s, okS := a.(string)
	t, okT := b.(string)
	if okS && okT {
		return cmp.Compare(s, t), true
	}
	u, okU := a.(bool)
	w, okW := b.(bool)
	if okU && okW && u == w {
		return 0, true
	}
	return 1, okU && okW
}

func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// presets reads the section and applies the chosen preset.
func (p *inputParser) presets(section *yamltree.Node, chosen string) {
	if section != nil {
		f := p.mapping(*section, *section, "presets", nil)
		for _, name := range f.names {
			p.Presets = append(p.Presets, name)
			preset := p.mapping(f.value[name], f.key[name], fmt.Sprintf("preset %q", name), presetKeys)
			preset.require("vars")
			vars := p.mapping(preset.value["vars"], f.key[name], fmt.Sprintf("vars of preset %q", name), nil)
			for _, variable := range vars.names {
				p.presetValue(name, vars.key[variable], vars.value[variable], name == chosen)
			}
		}
	}
	if chosen == "" {
		return
	}
	if !slices.Contains(p.Presets, chosen) {
		hint := suggest(chosen, p.Presets)
		if len(p.Presets) == 0 {
			hint = "it offers none"
		}
		p.problems.Add(diag.Diagnostic{Code: "unknown-preset", Pos: diag.Position{File: "--preset " + chosen},
			Message: fmt.Sprintf("the scenario has no preset %q", chosen), Hint: hint})
		return
	}
	p.Preset = chosen
}

func (p *inputParser) presetValue(preset string, key, value yamltree.Node, apply bool) {
	v := p.find(key.Text)
	if v == nil {
		p.report(key, "unknown-variable", suggest(key.Text, p.variableNames()),
			"preset %q sets %q, which is not a variable", preset, key.Text)
		return
	}
	if value.Kind == yamltree.Sequence && len(value.Items) == 1 {
		value = value.Items[0]
	}
	if value.Kind != yamltree.Scalar || yamltree.IsNull(value) {
		p.report(value, "wrong-type", "", "preset %q: %q is %s where a single value is wanted", preset, key.Text,
			quoteNode(value))
		return
	}
	chosen := yamltree.Resolve(value)
	if p.checkValue(v, chosen, value, "preset "+preset) && apply {
		v.Value, v.Origin = chosen, "preset "+preset
	}
}

// overrides applies the values of the command line, in the order of the names so that messages are stable.
func (p *inputParser) overrides(set map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		at := diag.Diagnostic{Pos: diag.Position{File: "--set " + name}}
		v := p.find(name)
		if v == nil {
			at.Code, at.Hint = "unknown-variable", suggest(name, p.variableNames())
			at.Message = fmt.Sprintf("the scenario has no variable %q", name)
			p.problems.Add(at)
			continue
		}
		value, err := typedLike(set[name], v.Default)
		at.Code, at.Hint = "bad-value", v.allowed()
		if err != nil {
			at.Message = fmt.Sprintf("variable %q: %v", name, err)
			p.problems.Add(at)
			continue
		}
		if why := v.refuses(value); why != "" {
			at.Message = fmt.Sprintf("variable %q: the value %v %s", name, value, why)
			p.problems.Add(at)
			continue
		}
		v.Value, v.Origin = value, "command line"
	}
}

// typedLike reads text as a value of the same type as like.
func typedLike(text string, like any) (any, error) {
	n := yamltree.Node{Text: strings.TrimSpace(text)}
	switch like.(type) {
	case int64:
		if i, ok := yamltree.AsInt(n); ok {
			return i, nil
		}
		return nil, fmt.Errorf("must be an integer like the default %v, got %q", like, text)
	case float64:
		if f, ok := yamltree.AsNumber(n); ok {
			return f, nil
		}
		return nil, fmt.Errorf("must be a number like the default %v, got %q", like, text)
	case bool:
		if b, ok := yamltree.Resolve(n).(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	}
	return text, nil
}

func (p *inputParser) find(name string) *Variable {
	for i := range p.Variables {
		if p.Variables[i].Name == name {
			return &p.Variables[i]
		}
	}
	return nil
}

func (p *inputParser) variableNames() []string {
	var names []string
	for _, v := range p.Variables {
		names = append(names, v.Name)
	}
	return names
}

// isIdentifier reports whether a template can use s as a name.
func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
