package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// segment is a stretch of the template: text, {{ … }} or {% … %}. Comments are dropped.
type segment struct {
	At
	kind   segmentKind
	tokens []token // of a tag, without the brackets, ended by tokenEnd
	broken bool    // the tag could not be read; a fault says so
}

type segmentKind int

const (
	textSegment segmentKind = iota
	outputSegment
	tagSegment
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenString
	tokenOperator
)

// token is a word of an expression. Value holds the number or the text of a string.
type token struct {
	At
	kind  tokenKind
	text  string
	value any
}

func (t token) is(kind tokenKind, text string) bool { return t.kind == kind && t.text == text }

// tagTokensMax bounds one tag, and with it the depth of the tree of its expression.
const tagTokensMax = 4000

// scanner cuts a template into segments.
type scanner struct {
	source   string
	pos      int
	trimNext bool // the last tag ended with "-"
	segments []segment
	faults   []Fault
}

func scan(source string) ([]segment, []Fault) {
	// As Jinja does by default, one line feed at the very end belongs to the file, not to the text.
	s := &scanner{source: strings.TrimSuffix(source, "\n")}
	for s.pos < len(s.source) {
		next := s.nextTag()
		s.text(next)
		if next < len(s.source) {
			s.tag()
		}
	}
	return s.segments, s.faults
}

// nextTag finds the next {{, {% or {#.
func (s *scanner) nextTag() int {
	for i := s.pos; i+1 < len(s.source); i++ {
		if s.source[i] == '{' && strings.IndexByte("{%#", s.source[i+1]) >= 0 {
			return i
		}
	}
	return len(s.source)
}

const Blanks = " \t\r\n"

// text adds the text between two tags, without the blanks that "-" at either tag trims.
func (s *scanner) text(end int) {
	from, to := s.pos, end
	if s.trimNext {
		from += len(s.source[from:to]) - len(strings.TrimLeft(s.source[from:to], Blanks))
	}
	s.trimNext = false
	if end+2 < len(s.source) && s.source[end+2] == '-' {
		to = from + len(strings.TrimRight(s.source[from:to], Blanks))
	}
	if to > from {
		s.segments = append(s.segments, segment{kind: textSegment, At: At{from, to - from}})
	}
	s.pos = end
}

func (s *scanner) tag() {
	start, open := s.pos, s.source[s.pos:s.pos+2]
	s.pos += 2
	if s.pos < len(s.source) && (s.source[s.pos] == '-' || s.source[s.pos] == '+') {
		s.pos++
	}
	if open == "{#" {
		end := strings.Index(s.source[s.pos:], "#}")
		if end < 0 {
			s.unclosed(start, "{#", "#}")
			return
		}
		s.trimNext = strings.HasSuffix(s.source[s.pos:s.pos+end], "-")
		s.pos += end + 2
		return
	}
	kind, closer := outputSegment, "}}"
	if open == "{%" {
		kind, closer = tagSegment, "%}"
	}
	seg := segment{kind: kind}
	seg.tokens, seg.broken = s.tokens(start, open, closer)
	seg.At = At{start, s.pos - start}
	if !seg.broken && len(seg.tokens) == 2 && kind == tagSegment && seg.tokens[0].is(tokenName, "raw") {
		s.raw(start)
		return
	}
	s.segments = append(s.segments, seg)
}

// raw adds the text up to {% endraw %} verbatim.
func (s *scanner) raw(start int) {
	rest := s.source[s.pos:]
	for i := 0; ; {
		open := strings.Index(rest[i:], "{%")
		if open < 0 {
			s.unclosed(start, "{% raw %}", "{% endraw %}")
			return
		}
		i += open
		body := strings.TrimLeft(strings.TrimLeft(rest[i+2:], "-+"), Blanks)
		after, found := strings.CutPrefix(body, "endraw")
		after = strings.TrimLeft(after, Blanks)
		closing := strings.TrimPrefix(after, "-")
		if found && strings.HasPrefix(closing, "%}") {
			s.text(s.pos + i) // sees the "-" on either side
			s.trimNext = closing != after
			s.pos = len(s.source) - len(closing) + 2
			return
		}
		i += 2
	}
}

func (s *scanner) unclosed(start int, open, closer string) {
	s.faults = append(s.faults, *At{start, min(len(open), len(s.source)-start)}.Fault("template-syntax",
		open+" is never closed by "+closer, ""))
	s.pos = len(s.source)
}

// tokens reads the words up to closer. After a fault it skips to the closer, so that later tags are still read.
func (s *scanner) tokens(start int, open, closer string) ([]token, bool) {
	var out []token
	var brackets []byte
	for {
		s.pos += len(s.source[s.pos:]) - len(strings.TrimLeft(s.source[s.pos:], Blanks))
		rest := s.source[s.pos:]
		if rest == "" {
			s.unclosed(start, open, closer)
			return nil, true
		}
		if len(brackets) == 0 {
			trimmed := strings.TrimPrefix(rest, "-")
			if closer == "%}" {
				trimmed = strings.TrimPrefix(trimmed, "+")
			}
			if strings.HasPrefix(trimmed, closer) {
				s.trimNext = rest[0] == '-'
				out = append(out, token{kind: tokenEnd, At: At{s.pos, len(rest) - len(trimmed) + 2}})
				s.pos += len(rest) - len(trimmed) + 2
				return out, false
			}
		}
		t, fault := s.token()
		if fault == nil {
			brackets, fault = balance(brackets, t)
		}
		if len(out) == tagTokensMax {
			fault = At{start, 2}.Fault("template-syntax", "the tag has more than "+strconv.Itoa(tagTokensMax)+" words", "")
		}
		if fault != nil {
			s.faults = append(s.faults, *fault)
			end := strings.Index(s.source[start:], closer)
			if end < 0 {
				s.pos = len(s.source)
			} else {
				s.pos = max(s.pos, start+end+2)
			}
			return nil, true
		}
		out = append(out, t)
	}
}

// balance tracks the open brackets, because "}}" may also close two dictionaries.
func balance(brackets []byte, t token) ([]byte, *Fault) {
	if t.kind != tokenOperator || len(t.text) != 1 {
		return brackets, nil
	}
	i := strings.IndexByte("([{)]}", t.text[0])
	switch {
	case i < 0:
		return brackets, nil
	case i < 3:
		return append(brackets, ")]}"[i]), nil
	case len(brackets) == 0 || brackets[len(brackets)-1] != t.text[0]:
		return brackets, t.Fault("template-syntax", "unexpected "+strconv.Quote(t.text), "")
	}
	return brackets[:len(brackets)-1], nil
}

// operators, the longer ones first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":", "|",
	"(", ")", "[", "]", "{", "}"}

func (s *scanner) token() (token, *Fault) {
	rest, start := s.source[s.pos:], s.pos
	c := rest[0]
	switch {
	case isNameStart(c):
		n := 1
		for n < len(rest) && (isNameStart(rest[n]) || isDigit(rest[n])) {
			n++
		}
		s.pos += n
		return token{kind: tokenName, text: rest[:n], At: At{start, n}}, nil
	case isDigit(c):
		return s.number()
	case c == '"' || c == '\'':
		return s.quoted(c)
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			s.pos += len(op)
			return token{kind: tokenOperator, text: op, At: At{start, len(op)}}, nil
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	s.pos += size
	return token{}, At{start, size}.Fault("template-syntax", "unexpected character "+strconv.QuoteRune(r), "")
}

func isNameStart(c byte) bool { return c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z') }
func isDigit(c byte) bool     { return c >= '0' && c <= '9' }

// number reads a whole number, with _ between digits or a prefix, or a number with fraction or exponent.
func (s *scanner) number() (token, *Fault) {
	rest, n := s.source[s.pos:], 0
	digits := func() {
		for n < len(rest) && (isDigit(rest[n]) || rest[n] == '_') {
			n++
		}
	}
	float := false
	if len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		for n = 2; n < len(rest) && (isDigit(rest[n]) || isNameStart(rest[n])); {
			n++
		}
	} else {
		digits()
		if n+1 < len(rest) && rest[n] == '.' && isDigit(rest[n+1]) {
			float = true
			n++
			digits()
		}
		if n < len(rest) && rest[n]|0x20 == 'e' {
			mark := n + 1
			if mark < len(rest) && (rest[mark] == '+' || rest[mark] == '-') {
				mark++
			}
			if mark < len(rest) && isDigit(rest[mark]) {
				float, n = true, mark
				digits()
			}
		}
	}
	t := token{kind: tokenNumber, text: rest[:n], At: At{s.pos, n}}
	s.pos += n
	var err error
	plain := strings.ReplaceAll(t.text, "_", "")
	if float {
		t.value, err = strconv.ParseFloat(plain, 64)
	} else {
		t.value, err = strconv.ParseInt(trimZeros(plain), 0, 64)
	}
	if err != nil {
		return t, t.Fault("template-syntax", "the number "+Shorten(t.text)+" is malformed or too large", "")
	}
	return t, nil
}

// trimZeros keeps ParseInt from reading "010" as octal.
func trimZeros(s string) string {
	if len(s) > 1 && s[0] == '0' && isDigit(s[1]) {
		return strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:]
	}
	return s
}

// quoted reads a string. Unknown escapes stay as they are, as in Python.
func (s *scanner) quoted(quote byte) (token, *Fault) {
	start := s.pos
	var b strings.Builder
	for i := start + 1; i < len(s.source); i++ {
		c := s.source[i]
		if c == quote {
			s.pos = i + 1
			place := At{start, s.pos - start}
			return token{kind: tokenString, text: s.source[start:s.pos], value: b.String(), At: place}, nil
		}
		if c != '\\' || i+1 >= len(s.source) {
			b.WriteByte(c)
			continue
		}
		size := unescape(&b, s.source[i+1:])
		i += size
	}
	s.pos = len(s.source)
	return token{}, At{start, 1}.Fault("template-syntax", "the quote is never closed", "")
}

// unescape writes the character of an escape after a backslash and returns the length of the escape.
func unescape(b *strings.Builder, rest string) int {
	if i := strings.IndexByte(`nrtabfv0\'"`, rest[0]); i >= 0 {
		b.WriteByte("\n\r\t\a\b\f\v\x00\\'\""[i])
		return 1
	}
	if size := map[byte]int{'x': 2, 'u': 4}[rest[0]]; size > 0 && len(rest) > size {
		if r, err := strconv.ParseUint(rest[1:1+size], 16, 32); err == nil {
			b.WriteRune(rune(r))
			return 1 + size
		}
	}
	b.WriteByte('\\')
	b.WriteByte(rest[0])
	return 1
}

// Shorten limits the length of quoted input in a message.
func Shorten(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
