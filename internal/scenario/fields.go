package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/scenario/yamltree"

	"github.com/braggdev/bragg/internal/diag"
)

// parser turns a tree into a Scenario. It reports everything it finds and goes on.
type parser struct {
	file     string
	source   []string // lines as written
	rendered []string // lines as rendered
	list     diag.List
	reported map[placeAndCode]*repeated // so that a loop reports a problem once
	sc       *Scenario
	wanted   []wantedFile // files that the document names
}

// placeAndCode is what the passes of a loop have in common when they repeat a problem.
type placeAndCode struct {
	line, column int
	code         string
}

type repeated struct{ index, renderedLine, passes int }

// report adds an error at n.
func (p *parser) report(n yamltree.Node, code, hint, format string, args ...any) {
	p.add(n, diag.Diagnostic{Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// warn adds a warning at n.
func (p *parser) warn(n yamltree.Node, code, hint, format string, args ...any) {
	p.add(n, diag.Diagnostic{Severity: diag.SeverityWarning, Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (p *parser) add(n yamltree.Node, d diag.Diagnostic) {
	key := placeAndCode{n.Line, n.Column, d.Code}
	if first := p.reported[key]; first != nil && first.renderedLine != n.RenderedLine && n.Line > 0 {
		first.passes++
		return
	}
	if p.reported == nil {
		p.reported = map[placeAndCode]*repeated{}
	}
	p.reported[key] = &repeated{index: len(p.list), renderedLine: n.RenderedLine}
	shown := p.diagnostic(n.Line, n.Column, n.Width, n.RenderedLine)
	d.Pos, d.Width, d.Source, d.Rendered = shown.Pos, shown.Width, shown.Source, shown.Rendered
	p.list.Add(d)
}

// collected returns all diagnostics in the order of the text.
func (p *parser) collected() diag.List {
	for _, r := range p.reported {
		if r.passes == 1 {
			p.list[r.index].Message += " (and in another pass of the loop)"
		} else if r.passes > 1 {
			p.list[r.index].Message += fmt.Sprintf(" (and in %d more passes of the loop)", r.passes)
		}
	}
	return p.list.Sorted()
}

// diagnostic starts a diagnostic at a place of the user's text.
func (p *parser) diagnostic(line, column, width, renderedLine int) diag.Diagnostic {
	d := diag.Diagnostic{Pos: diag.Position{File: p.file, Line: line, Column: column}, Width: width}
	if line >= 1 && line <= len(p.source) {
		d.Source = p.source[line-1]
		d.Width = min(width, max(1, len(d.Source)-column+1))
	}
	if renderedLine >= 1 && renderedLine <= len(p.rendered) && d.Source != "" {
		if text := p.rendered[renderedLine-1]; strings.TrimSpace(text) != strings.TrimSpace(d.Source) {
			d.Rendered = text
		}
	}
	return d
}

func (p *parser) pos(n yamltree.Node) diag.Position {
	return diag.Position{File: p.file, Line: n.Line, Column: n.Column}
}

// fields are the keys of one mapping.
type fields struct {
	p     *parser
	what  string        // "VM group \"OLTP\"", for messages
	at    yamltree.Node // where a missing key is reported
	names []string
	key   map[string]yamltree.Node
	value map[string]yamltree.Node
	meant []string // known keys that unknown ones are probably meant to be
}

// fields reads a mapping whose keys are known beforehand; it reports unknown keys and keys that stand twice.
func (p *parser) fields(n, at yamltree.Node, what string, known []string) fields {
	f := fields{p: p, what: what, at: at, key: map[string]yamltree.Node{}, value: map[string]yamltree.Node{}}
	if n.Kind != yamltree.Mapping {
		if !yamltree.IsNull(n) {
			p.report(n, "wrong-shape", "", "%s is %s where a mapping of keys is wanted", what, n.Kind)
		}
		return f
	}
	for i := 0; i+1 < len(n.Items); i += 2 {
		key, value := n.Items[i], n.Items[i+1]
		if key.Kind != yamltree.Scalar {
			p.report(key, "wrong-shape", "", "a key of %s is %s where a name is wanted", what, key.Kind)
			continue
		}
		if known != nil && !slices.Contains(known, key.Text) {
			f.meant = append(f.meant, p.unknownKey(key, what, known))
			continue
		}
		if first, twice := f.key[key.Text]; twice {
			p.report(key, "duplicate-key", "", "%s has the key %q twice; the first is in line %d", what,
				key.Text, first.Line)
			continue
		}
		f.names = append(f.names, key.Text)
		f.key[key.Text], f.value[key.Text] = key, value
	}
	return f
}

// topFields reads the keys of the whole document. X-Ray's reader ignores those that it does not know, and people keep notes and
// anchors there, so they are warnings; but one that is probably a key that has to be there is an error.
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
			known.Items = append(known.Items, key, strange[i+1]) // reported as a slip
			continue
		}
		hint := "X-Ray ignores it too"
		if near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.warn(key, "unknown-key", hint, "the scenario has no key %q, so it is ignored", shorten(key.Text))
	}
	return p.fields(known, at, "the scenario", topKeys)
}

// unknownKey reports a key and returns the one that is probably meant, or "".
func (p *parser) unknownKey(key yamltree.Node, what string, known []string) string {
	hint, near := "", diag.Nearest(key.Text, known)
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(known) <= 12 {
		hint = "known here: " + strings.Join(known, ", ")
	}
	p.report(key, "unknown-key", hint, "%s has no key %q", what, shorten(key.Text))
	return near
}

// shorten keeps quoted input from filling a message.
func shorten(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return string([]rune(s)[:40]) + "…"
	}
	return s
}

// require reports every name that is missing or has no value.
func (f fields) require(names ...string) {
	for _, name := range names {
		value, ok := f.value[name]
		switch {
		case slices.Contains(f.meant, name): // its misspelling is already reported
		case !ok:
			f.p.report(f.at, "missing-key", "", "%s has no %q", f.what, name)
		case yamltree.IsNull(value):
			f.p.report(f.key[name], "missing-value", "", "%s: %q has no value", f.what, name)
		}
	}
}

// get returns the value of name; a key without a value counts as absent.
func (f fields) get(name string) (yamltree.Node, bool) {
	n, ok := f.value[name]
	return n, ok && !yamltree.IsNull(n)
}

// text reads a value as text; numbers and booleans are taken as they are written.
func (f fields) text(name string) string {
	n, ok := f.get(name)
	if !ok {
		return ""
	}
	if n.Kind != yamltree.Scalar {
		f.p.report(n, "wrong-type", "", "%s: %s is %s where text is wanted", f.what, name, n.Kind)
		return ""
	}
	return strings.TrimSpace(n.Text)
}

// integer reads a whole number between low and high; absent or wrong gives fallback.
func (f fields) integer(name string, low, high, fallback int64) int64 {
	n, ok := f.get(name)
	if !ok {
		return fallback
	}
	i, ok := yamltree.AsInt(n)
	if !ok {
		f.p.report(n, "wrong-type", "", "%s: %s is %s where a whole number is wanted", f.what, name, quoteNode(n))
		return fallback
	}
	if i < low || i > high {
		f.p.report(n, "out-of-range", "", "%s: %s is %d and must be from %d to %d", f.what, name, i, low, high)
		return fallback
	}
	return i
}

// number reads a finite number.
func (f fields) number(name string) (float64, bool) {
	n, ok := f.get(name)
	if !ok {
		return 0, false
	}
	v, ok := yamltree.AsNumber(n)
	if !ok {
		f.p.report(n, "wrong-type", "", "%s: %s is %s where a number is wanted", f.what, name, quoteNode(n))
	}
	return v, ok
}

// secondsMax bounds every duration in a scenario: a year.
const secondsMax = 366 * 24 * 3600

// duration reads seconds, or text with a unit such as "30s" or "5 m".
func (f fields) duration(name string) time.Duration {
	n, ok := f.get(name)
	if !ok {
		return 0
	}
	d, ok := parseDuration(n)
	if !ok {
		f.p.report(n, "wrong-type", `write seconds, or a number with s, m or h: "30s"`,
			"%s: %s is %s where a time is wanted", f.what, name, quoteNode(n))
		return 0
	}
	if d < 0 || d > secondsMax*time.Second {
		f.p.report(n, "out-of-range", "", "%s: %s is %s and must be from 0 to %d seconds", f.what, name,
			quoteNode(n), secondsMax)
		return 0
	}
	return d
}

func parseDuration(n yamltree.Node) (time.Duration, bool) {
	if n.Kind != yamltree.Scalar {
		return 0, false
	}
	text, scale := strings.TrimSpace(n.Text), time.Second
	for _, u := range durationUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, scale = strings.TrimSpace(rest), u.scale
			break
		}
	}
	v, ok := yamltree.AsNumber(yamltree.Node{Text: text})
	if !ok || v < -secondsMax || v > secondsMax {
		return 0, ok
	}
	return time.Duration(v * float64(scale)), true
}

// durationUnits are tried in this order, so that "ms" is not taken for "s".
var durationUnits = []struct {
	suffix string
	scale  time.Duration
}{
	{"ms", time.Millisecond}, {"µs", time.Microsecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
	{"min", time.Minute}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// texts reads a list of texts.
func (f fields) texts(name string) []string {
	var out []string
	for _, n := range f.list(name) {
		if n.Kind != yamltree.Scalar || yamltree.IsNull(n) {
			f.p.report(n, "wrong-type", "", "%s: an entry of %s is %s where text is wanted", f.what, name, quoteNode(n))
			continue
		}
		out = append(out, n.Text)
	}
	return out
}

// list returns the entries of a list.
func (f fields) list(name string) []yamltree.Node {
	n, ok := f.get(name)
	if !ok {
		return nil
	}
	if n.Kind != yamltree.Sequence {
		f.p.report(n, "wrong-type", `begin each entry with "- "`, "%s: %s is %s where a list is wanted", f.what, name, quoteNode(n))
		return nil
	}
	return n.Items
}

// oneOf reads a text that must be one of choices.
func (f fields) oneOf(name string, choices []string) string {
	text := f.text(name)
	if text == "" || slices.Contains(choices, text) {
		return text
	}
	n, _ := f.get(name)
	f.p.report(n, "unknown-value", suggest(text, choices), "%s: %s cannot be %q", f.what, name, text)
	return ""
}

// suggest proposes the nearest choice, or lists them all.
func suggest(text string, choices []string) string {
	if near := diag.Nearest(text, choices); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(choices) == 0 {
		return ""
	}
	if len(choices) > 12 {
		return fmt.Sprintf("one of %s, … (%d in all)", strings.Join(choices[:12], ", "), len(choices))
	}
	return "one of " + strings.Join(choices, ", ")
}

// quoteNode names a value in a message.
func quoteNode(n yamltree.Node) string {
	if n.Kind != yamltree.Scalar {
		return n.Kind.String()
	}
	if yamltree.IsNull(n) {
		return "empty"
	}
	return fmt.Sprintf("%q", shorten(n.Text))
}

// checkName reports a name that cannot be shown or used in a file name.
func (p *parser) checkName(n yamltree.Node, what string, longest int) {
	switch {
	case n.Kind != yamltree.Scalar || strings.TrimSpace(n.Text) == "":
		p.report(n, "bad-name", "", "%s has no name", what)
	case utf8.RuneCountInString(n.Text) > longest:
		p.report(n, "bad-name", "", "the name of %s has %d characters and at most %d are allowed",
			what, utf8.RuneCountInString(n.Text), longest)
	case strings.ContainsFunc(n.Text, func(r rune) bool { return !unicode.IsPrint(r) }):
		p.report(n, "bad-name", "", "the name of %s has characters that cannot be printed", what)
	}
}
