package yamltree

import (
	"fmt"
	"strings"
)

// Bounds of a document's structure. No known scenario is nested deeper than eight levels or has more than a few thousand values.
const (
	nestingMax = 32
	marksMax   = 2 * nodesMax // commas, brackets and lines; each value needs one
	anchorsMax = 5000         // and aliases; the YAML parser takes seconds over very many
)

// Survey looks at the structure of a document before any YAML parser sees it. It counts indentation, dashes, brackets,
// commas and anchors, so it may be stricter than YAML, never laxer: quoted text counts too, block text (after | or >) does
// not. The returned fault has its position in the rendered text.
func Survey(lines []string) *Fault {
	s := surveyor{textIndent: -1}
	for i, text := range lines {
		column, problem := s.line(text)
		if problem != "" {
			code := "too-many-values"
			if problem == problemDeep {
				code = "too-deep"
			}
			return &Fault{Code: code, Message: problem, RenderedLine: i + 1, Column: column}
		}
	}
	return nil
}

var (
	problemDeep    = fmt.Sprintf("the document is nested more than %d deep", nestingMax)
	problemMany    = fmt.Sprintf("the document has more than %d values", nodesMax)
	problemAnchors = fmt.Sprintf("the document has more than %d anchors and aliases", anchorsMax)
)

type surveyor struct {
	indents    []int // columns of the open block collections
	brackets   int
	marks      int
	anchors    int
	textIndent int // of the key whose block text is being skipped, or -1
}

// line goes through one line and returns the column of a problem, from 1.
func (s *surveyor) line(text string) (column int, problem string) {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	if body == "" || body[0] == '#' {
		return 0, ""
	}
	if s.textIndent >= 0 {
		if indent > s.textIndent {
			return 0, ""
		}
		s.textIndent = -1
	}
	s.marks++
	if s.brackets == 0 {
		for len(s.indents) > 0 && s.indents[len(s.indents)-1] >= indent {
			s.indents = s.indents[:len(s.indents)-1]
		}
		s.indents = append(s.indents, indent)
	}
	at := indent
	for at+1 < len(text) && strings.IndexByte("-?:", text[at]) >= 0 && text[at+1] == ' ' {
		at = len(text) - len(strings.TrimLeft(text[at+1:], " "))
		s.indents = append(s.indents, at)
		if len(s.indents) > nestingMax {
			return at + 1, problemDeep
		}
	}
	for ; at < len(text); at++ {
		if problem := s.mark(text, at); problem != "" {
			return at + 1, problem
		}
	}
	if s.brackets == 0 && opensBlockText(body) {
		s.textIndent = indent
	}
	return 0, ""
}

// mark counts one byte.
func (s *surveyor) mark(text string, at int) string {
	switch text[at] {
	case '[', '{':
		s.brackets++
		s.marks++
	case ']', '}':
		s.brackets = max(s.brackets-1, 0)
	case ',':
		s.marks++
	case '&', '*':
		if at == 0 || strings.IndexByte(" ,[{", text[at-1]) >= 0 {
			s.anchors++
		}
	}
	switch {
	case len(s.indents)+s.brackets > nestingMax:
		return problemDeep
	case s.marks > marksMax:
		return problemMany
	case s.anchors > anchorsMax:
		return problemAnchors
	}
	return ""
}

// opensBlockText reports whether a line ends in | or >, perhaps with - + or a digit, behind a key or a dash.
func opensBlockText(body string) bool {
	if at := strings.Index(body, " #"); at >= 0 {
		body = body[:at]
	}
	body = strings.TrimRight(strings.TrimRight(body, " "), "-+123456789")
	if body == "" {
		return false
	}
	last := body[len(body)-1]
	before := strings.TrimRight(body[:len(body)-1], " ")
	return (last == '|' || last == '>') && (strings.HasSuffix(before, ":") || strings.HasSuffix(before, "-"))
}
