// Package yamltree reads YAML text into plain values with their place in the user's own text. It refuses YAML features that
// scenarios do not use, and bounds the size that aliases and nesting can give to a small text.
//
//	rendered text ──Survey: nesting──▶ YAML library ──TreeBuilder──▶ Node, or Faults
package yamltree

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// RenderedBytesMax bounds the text after rendering.
const RenderedBytesMax = 4 << 20

// kind is the shape of a node.
type kind uint8

const (
	Scalar kind = iota
	Sequence
	Mapping
)

func (k kind) String() string { return [...]string{"a single value", "a list", "a mapping"}[k] }

// Node is one value of the rendered document with its place in the user's own text. The child process returns nodes to its
// parent, so that the parent never runs the YAML parser on untrusted text.
type Node struct {
	Kind         kind
	Text         string // of a scalar
	Quoted       bool   // a quoted scalar: always text
	Line, Column int    // in test.yml as written, from 1; the column counts bytes
	Width        int    // bytes to underline there
	RenderedLine int    // line in the rendered text, from 1
	Items        []Node // of a sequence; of a mapping: key, value, key, value, …
}

// nodesMax bounds the values of one document; scenarios of the corpus have at most a few thousand.
const nodesMax = 100_000

// Placer maps a position of the rendered text to the user's text. All count from 1, columns in bytes.
type Placer interface {
	Place(line, column int) (srcLine, srcColumn, width int)
}

// Builder converts nodes of the YAML library to Node and refuses features that scenarios do not use.
type Builder struct {
	Lines  []string // of the rendered text
	Place  Placer
	Faults []Fault
	cursor columnCursor

	count, text int  // of values, and of bytes of scalars
	aliases     int  // open around the current value
	refused     bool // because of its aliases
}

// Fault is a problem that the child found. Line and Column are in the user's text; 0 means unknown.
type Fault struct {
	Code, Message, Hint string
	Line, Column, Width int
	RenderedLine        int
}

func (b *Builder) Build(y *yaml.Node) Node {
	b.count++
	if b.count == nodesMax+1 {
		hint := ""
		if b.aliases > 0 {
			hint = "the content of an alias counts each time"
		}
		b.fault(y, "too-many-values", fmt.Sprintf("the document has more than %d values", nodesMax), hint)
	}
	if b.full() {
		return Node{}
	}
	if y.Kind == yaml.AliasNode {
		return b.alias(y)
	}
	b.countText(y)
	column := b.byteColumn(y.Line, y.Column)
	n := Node{Text: y.Value, RenderedLine: y.Line}
	n.Line, n.Column, n.Width = b.Place.Place(y.Line, column)
	n.Width = max(n.Width, 1)
	b.refuse(y)
	switch y.Kind {
	case yaml.ScalarNode:
		n.Kind = Scalar
		n.Quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		n.Width = b.extent(n, column, scalarWidth(b.line(y.Line), column, y.Value))
		return n
	case yaml.SequenceNode:
		n.Kind = Sequence
	case yaml.MappingNode:
		n.Kind = Mapping
		n.Items = b.mapping(y)
		return n
	}
	for _, c := range y.Content {
		n.Items = append(n.Items, b.Build(c))
	}
	return n
}

// extent converts a width in bytes of the rendered line to the width in the user's text: "group_1" may be written as "group_{{ g
// }}".
func (b *Builder) extent(n Node, column, width int) int {
	line, last, tag := b.Place.Place(n.RenderedLine, column+width-1)
	if line != n.Line || last < n.Column {
		return n.Width
	}
	return max(last+max(tag, 1)-n.Column, n.Width)
}

// refuse reports tags, which scenarios do not use.
func (b *Builder) refuse(y *yaml.Node) {
	if y.Style&yaml.TaggedStyle != 0 {
		b.fault(y, "yaml-tag", fmt.Sprintf("tags are not allowed: %s", y.Tag), "quote the value to make it text")
	}
}

func (b *Builder) fault(y *yaml.Node, code, message, hint string) {
	f := Fault{Code: code, Message: message, Hint: hint, RenderedLine: y.Line}
	f.Line, f.Column, f.Width = b.Place.Place(y.Line, b.byteColumn(y.Line, y.Column))
	b.Faults = append(b.Faults, f)
}

func (b *Builder) line(n int) string {
	if n < 1 || n > len(b.Lines) {
		return ""
	}
	return b.Lines[n-1]
}

// columnCursor remembers the position of the last value in a line, so that a long line is scanned once, not once per value.
type columnCursor struct{ line, column, at int }

// byteColumn turns the library's column, which counts characters from 1, into one that counts bytes.
func (b *Builder) byteColumn(number, column int) int {
	line, c := b.line(number), &b.cursor
	if c.line != number || c.column > column {
		*c = columnCursor{line: number, column: 1}
	}
	for c.column < column && c.at < len(line) {
		_, size := utf8.DecodeRuneInString(line[c.at:])
		c.at += size
		c.column++
	}
	return c.at + 1
}

// scalarWidth returns how many bytes of line the scalar at column takes, including quotes.
func scalarWidth(line string, column int, value string) int {
	if column < 1 || column > len(line) {
		return 1
	}
	rest := line[column-1:]
	if quote := rest[0]; quote == '"' || quote == '\'' {
		if end := strings.IndexByte(rest[1:], quote); end >= 0 {
			return end + 2
		}
		return len(strings.TrimRight(rest, " "))
	}
	first, _, _ := strings.Cut(value, "\n")
	if first != "" && strings.HasPrefix(rest, first) {
		return len(first)
	}
	if end := strings.Index(rest, " #"); end > 0 {
		rest = rest[:end]
	}
	return max(1, len(strings.TrimRight(rest, " ")))
}
