package target

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
)

const (
	configBytesMax = 1 << 20
	configNodesMax = 1024
	textBytesMax   = 4096 // of one value
)

// ParseConfig reads the text of a target file. It reports all problems, each with its place; the Config holds the valid
// parts and must not be used if the list has errors. providers are those that a file may name.
func ParseConfig(file string, text []byte, providers []Provider) (Config, diag.List) {
	p := &configParser{file: file, lines: strings.Split(string(text), "\n")}
	c := Config{File: file}
	if len(text) > configBytesMax {
		p.list.Errorf(diag.Position{File: file}, "target-too-large", "the file has more than %d bytes", configBytesMax)
		return c, p.list
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		p.syntax(err)
		return c, p.list
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) == 0 {
		p.list.Errorf(diag.Position{File: file, Line: 1, Column: 1}, "target-empty", "the file is empty")
		return c, p.list
	}
	p.config(document.Content[0], &c, providers)
	return c, p.list
}

type configParser struct {
	file  string
	lines []string
	list  diag.List
	// private: the current part of the file may contain secrets. Messages show no value and no line of it.
	private bool
}

func (p *configParser) syntax(err error) {
	d := diag.Diagnostic{Code: "yaml-syntax", Pos: diag.Position{File: p.file, Line: 1}, Message: err.Error()}
	var load *yaml.LoadError
	if errors.As(err, &load) && load.Mark.Line > 0 {
		d.Pos.Line, d.Pos.Column, d.Message = load.Mark.Line, max(1, load.Mark.Column), load.Message
		d.Source = p.line(load.Mark.Line)
		if strings.HasPrefix(strings.TrimLeft(d.Source, " "), "\t") {
			d.Hint = "YAML is indented with spaces, not with tabs"
		}
	}
	for _, prefix := range []string{"yaml: ", "<unknown position>: "} {
		if i := strings.LastIndex(d.Message, prefix); i >= 0 {
			d.Message = d.Message[i+len(prefix):]
		}
	}
	if strings.HasPrefix(d.Message, "no documents") {
		d.Code, d.Message = "target-empty", "the file is empty"
	}
	p.list.Add(d)
}

func (p *configParser) line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	return strings.TrimSuffix(p.lines[n-1], "\r")
}

// errorf reports a problem at a node, with an optional hint before the message.
func (p *configParser) errorf(n *yaml.Node, code, hint, format string, args ...any) {
	p.list.Add(p.at(n, code, hint, fmt.Sprintf(format, args...)))
}

func (p *configParser) at(n *yaml.Node, code, hint, message string) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: code, Hint: hint, Message: message, Width: 1, Source: p.line(n.Line),
		Pos: diag.Position{File: p.file, Line: n.Line, Column: byteColumn(p.line(n.Line), n.Column)},
	}
	if n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "\n") {
		d.Width = max(1, len(n.Value))
	}
	if p.private {
		d.Source, d.Width = "", 0
	}
	return d
}

// byteColumn converts a column in characters into a column in bytes.
func byteColumn(line string, column int) int {
	seen := 1
	for i := range line {
		if seen == column {
			return i + 1
		}
		seen++
	}
	return len(line) + 1 + max(0, column-seen)
}

// entry is one key with its value.
type entry struct{ key, value *yaml.Node }

// entries returns the entries of a mapping. Keys other than known are errors with a suggestion; nil known allows all.
func (p *configParser) entries(n *yaml.Node, what string, known []string) []entry {
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "target-type", "", "%s: want keys with values, found %s", what, p.found(n))
		return nil
	}
	var all []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.errorf(key, "target-type", "", "%s: want a word as key, found %s", what, p.found(key))
		case seen[key.Value]:
			p.errorf(key, "target-duplicate-key", "", "%s: duplicate key %q", what, key.Value)
		case known != nil && !slices.Contains(known, key.Value):
			p.unknownKey(key, what, known)
		default:
			all = append(all, entry{key, value})
		}
		seen[key.Value] = true
	}
	return all
}

// field is a key of a record, and the destination of its value.
type field struct {
	key      string
	read     func(entry)
	required bool
}

func into[T any](to *T, read func(entry) T) func(entry) { return func(e entry) { *to = read(e) } }

// record reads a mapping with known keys in file order, and returns its entries.
func (p *configParser) record(outer entry, what string, fields ...field) []entry {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	entries := p.entries(outer.value, what, keys)
	for _, e := range entries {
		fields[slices.Index(keys, e.key.Value)].read(e)
	}
	for _, f := range fields {
		if f.required && !has(entries, f.key) && outer.value.Kind == yaml.MappingNode {
			p.errorf(outer.key, "target-missing-key", "", "%s: key %q is missing", what, f.key)
		}
	}
	return entries
}

func (p *configParser) unknownKey(key *yaml.Node, what string, known []string) {
	var hint string
	switch near := diag.Nearest(key.Value, known); {
	case slices.Contains([]string{"password", "passwd", "passphrase", "token", "key", "secret"}, strings.ToLower(key.Value)):
		defer func(before bool) { p.private = before }(p.private)
		p.private = true
		hint = `a target file holds no secrets: write "secret: {env: NAME}", {file: PATH} or {command: [PROGRAM, ARGUMENT]}`
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", near)
	default:
		hint = "known here: " + strings.Join(known, ", ")
	}
	p.errorf(key, "target-unknown-key", hint, "%s: unknown key %q", what, key.Value)
}

func (p *configParser) found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	if p.private {
		return "a text"
	}
	return fmt.Sprintf("%q", n.Value)
}

// text returns a scalar that is not empty.
func (p *configParser) text(e entry) string {
	n := e.value
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "":
		p.errorf(n, "target-type", "", "%s: want a text, found %s", e.key.Value, p.found(n))
		return ""
	case len(n.Value) > textBytesMax || strings.ContainsAny(n.Value, "\x00\n"):
		p.errorf(n, "target-type", "", "%s: want one line of at most %d bytes", e.key.Value, textBytesMax)
		return ""
	}
	return n.Value
}

func (p *configParser) number(e entry, low, high int) int {
	n, err := strconv.Atoi(e.value.Value)
	if e.value.Kind != yaml.ScalarNode || e.value.ShortTag() != "!!int" || err != nil || n < low || n > high {
		p.errorf(e.value, "target-number", "", "%s: want a whole number from %d to %d, found %s", e.key.Value, low, high,
			p.found(e.value))
		return 0
	}
	return n
}

// boolean reads true and false, and their synonyms in older YAML.
func (p *configParser) boolean(e entry) bool {
	word := e.value.Value
	if e.value.Kind == yaml.ScalarNode && e.value.ShortTag() == "!!bool" {
		word = strings.ToLower(word)
	}
	switch {
	case e.value.Kind == yaml.ScalarNode && e.value.ShortTag() == "!!bool", word == "yes", word == "no", word == "on", word == "off":
		return word == "true" || word == "yes" || word == "on"
	}
	p.errorf(e.value, "target-type", "", "%s: want true or false, found %s", e.key.Value, p.found(e.value))
	return false
}

// texts reads a mapping with arbitrary keys and scalar values.
func (p *configParser) texts(e entry) []Fact {
	var all []Fact
	for _, inner := range p.entries(e.value, e.key.Value, nil) {
		if len(all) >= configNodesMax {
			p.errorf(inner.key, "target-number", "", "%s: more than %d entries", e.key.Value, configNodesMax)
			break
		}
		all = append(all, Fact{Name: inner.key.Value, Value: p.text(inner)})
	}
	return all
}

func (p *configParser) address(e entry) netip.Addr {
	text := p.text(e)
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		p.errorf(e.value, "target-address", "", "%s: %q is not an IP address", e.key.Value, text)
	}
	return a
}
