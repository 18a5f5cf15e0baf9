package syntax

import (
	"slices"
	"strconv"
	"strings"
)

// blockParser builds statements from segments.
type blockParser struct {
	source   string
	words    *Words
	segments []segment
	pos      int
	depth    int
	broken   bool // a tag could not be read, so blocks may look unbalanced
	faults   []Fault
}

// Words are the names of the supported filters and tests, sorted.
type Words struct{ Filters, Tests []string }

// Parse reads a template. It continues after faults, so that all of them are found.
func Parse(source string, words *Words) ([]Stmt, []Fault) {
	segments, faults := scan(source)
	p := &blockParser{source: source, words: words, segments: segments, faults: faults}
	for _, seg := range segments {
		p.broken = p.broken || seg.broken && seg.kind == tagSegment
	}
	var body []Stmt
	for p.pos < len(p.segments) {
		part, end := p.block(nil)
		body = append(body, part...)
		if end != "" {
			seg := p.segments[p.pos-1]
			p.unbalanced(seg.Fault("template-syntax", "nothing is open that "+strconv.Quote(end)+" could close", ""))
		}
	}
	return body, p.faults
}

// notOffered are Jinja's tags that scenarios cannot use, with the reason.
var notOffered = map[string]string{
	"include": "a scenario is one text and reads no others", "import": "a scenario is one text and reads no others",
	"from": "a scenario is one text and reads no others", "extends": "a scenario is one text and reads no others",
	"block": "blocks serve extends, which is not offered", "macro": "use a loop, or set",
	"call": "use a loop, or set", "filter": "use the filter in {{ … }}", "autoescape": "nothing is escaped here",
	"do": "use set", "trans": "texts are not translated", "break": "give the loop a condition: for … if …",
	"continue": "give the loop a condition: for … if …", "debug": "",
}

var tagNames = []string{"for", "if", "set", "with", "raw"}

// closers are tags that end or divide a block.
var closers = []string{"endfor", "endif", "elif", "else", "endset", "endwith", "endraw"}

// block reads statements up to a tag in until, which it consumes and names. Without until it stops at any closer.
func (p *blockParser) block(until []string) ([]Stmt, string) {
	var out []Stmt
	for p.pos < len(p.segments) {
		seg := p.segments[p.pos]
		p.pos++
		switch {
		case seg.kind == textSegment:
			out = append(out, TextStmt{At: seg.At, Text: p.source[seg.Offset : seg.Offset+seg.Width]})
		case seg.broken:
		case seg.kind == outputSegment:
			e := exprParser{tokens: seg.tokens, words: p.words}
			x := e.tuple("")
			e.end()
			p.keep(e.fault)
			out = append(out, OutputStmt{At: seg.At, X: x})
		default:
			name := seg.tokens[0].text
			if slices.Contains(until, name) || (until == nil && slices.Contains(closers, name)) {
				return out, name
			}
			if s := p.tag(seg, name); s != nil {
				out = append(out, s)
			}
		}
	}
	return out, ""
}

func (p *blockParser) keep(f *Fault) {
	if f != nil {
		p.faults = append(p.faults, *f)
	}
}

// tag reads a statement. The expression parser is positioned after its name.
func (p *blockParser) tag(seg segment, name string) Stmt {
	first := seg.tokens[0]
	e := &exprParser{tokens: seg.tokens, words: p.words}
	e.next()
	if p.depth++; p.depth > blockDepthMax {
		p.keep(first.Fault("template-syntax", "the tags are nested too deeply", ""))
		p.pos = len(p.segments)
		return nil
	}
	defer func() { p.depth-- }()
	switch name {
	case "for":
		return p.forTag(seg, e)
	case "if":
		return p.ifTag(seg, e)
	case "set":
		return p.setTag(seg, e)
	case "with":
		return p.withTag(seg, e)
	}
	if opener, ends := strings.CutPrefix(name, "end"); ends && notOffered[opener] != "" {
		return nil // its opening tag is already reported
	}
	if hint, known := notOffered[name]; known {
		f := first.Fault("template-tag", strconv.Quote(name)+" is not offered in scenarios", hint)
		f.Subject = name
		p.keep(f)
		return nil
	}
	if slices.Contains(closers, name) {
		p.unbalanced(first.Fault("template-syntax", strconv.Quote(name)+" does not match the tag that is open", ""))
		return nil
	}
	if first.kind != tokenName {
		p.keep(first.Fault("template-syntax", "the name of a tag is missing", ""))
		return nil
	}
	p.keep(Unknown(first.At, "tag", name, tagNames))
	return nil
}

// unclosed reports a block that is still open at the end of the text.
func (p *blockParser) unclosed(seg segment, closer string) {
	first := seg.tokens[0]
	p.unbalanced(first.Fault("template-syntax", strconv.Quote(first.text)+" is never closed by "+strconv.Quote(closer), ""))
}

// unbalanced keeps a fault of the structure, unless a tag that could not be read explains it.
func (p *blockParser) unbalanced(f *Fault) {
	if !p.broken {
		p.keep(f)
	}
}

// Targets reads the names that a loop or set assigns to.
func (p *blockParser) targets(e *exprParser, stop string) []string {
	var names []string
	bracket := e.acceptOp("(")
	for e.fault == nil {
		t := e.next()
		if t.kind != tokenName || t.text == stop {
			e.fail(t, "the name of a variable is missing")
			return nil
		}
		names = append(names, t.text)
		if !e.acceptOp(",") {
			break
		}
	}
	if bracket {
		e.expectOp(")")
	}
	return names
}

func (p *blockParser) forTag(seg segment, e *exprParser) Stmt {
	f := ForStmt{At: seg.At, Iter: ConstExpr{At: seg.At}}
	f.Targets = p.targets(e, "in")
	if e.fault == nil && !e.accept(tokenName, "in") {
		e.fail(e.peek(), `expected "in" before `+describe(e.peek()))
	}
	if e.fault == nil {
		f.Iter = p.loopSource(e)
		if e.accept(tokenName, "if") {
			f.Cond = e.expression()
		}
		if t := e.peek(); t.is(tokenName, "recursive") {
			e.fail(t, "recursive loops are not offered")
		}
		e.end()
	}
	p.keep(e.fault)
	var end string
	f.Body, end = p.block([]string{"else", "endfor"})
	if end == "else" {
		f.More, end = p.block([]string{"endfor"})
	}
	if end == "" {
		p.unclosed(seg, "endfor")
	}
	return f
}

// loopSource reads what a loop iterates over. It ends at "if", which begins the loop's condition.
func (p *blockParser) loopSource(e *exprParser) Expr {
	start := e.peek()
	items := []Expr{e.or()}
	for e.acceptOp(",") {
		items = append(items, e.or())
	}
	if len(items) == 1 {
		return items[0]
	}
	return ListExpr{At: start.to(e.peek().At), Items: items, Tuple: true}
}

func (p *blockParser) ifTag(seg segment, e *exprParser) Stmt {
	s := IfStmt{At: seg.At, Cond: e.tuple("")}
	e.end()
	p.keep(e.fault)
	var end string
	s.Then, end = p.block([]string{"elif", "else", "endif"})
	switch end {
	case "":
		p.unclosed(seg, "endif")
	case "else":
		if s.More, end = p.block([]string{"endif"}); end == "" {
			p.unclosed(seg, "endif")
		}
	case "elif":
		// The chain is a nested if whose end is this one's end.
		elif := p.segments[p.pos-1]
		next := &exprParser{tokens: elif.tokens, words: p.words}
		next.next()
		if p.depth++; p.depth > blockDepthMax*4 {
			p.keep(elif.Fault("template-syntax", "the tags are nested too deeply", ""))
			p.pos = len(p.segments)
			return s
		}
		s.More = []Stmt{p.ifTag(elif, next)}
		p.depth--
	}
	return s
}

func (p *blockParser) setTag(seg segment, e *exprParser) Stmt {
	s := SetStmt{At: seg.At}
	s.Targets = p.targets(e, "")
	if e.fault == nil && len(s.Targets) == 1 && e.acceptOp(".") {
		t := e.next()
		if t.kind != tokenName {
			e.fail(t, "the name of an attribute is missing")
		}
		s.Attribute = t.text
	}
	if e.fault == nil && e.acceptOp("=") {
		s.X = e.tuple("")
		e.end()
		p.keep(e.fault)
		return s
	}
	e.end()
	p.keep(e.fault)
	if e.fault != nil {
		return nil
	}
	var end string
	if s.Body, end = p.block([]string{"endset"}); end == "" {
		p.unclosed(seg, "endset")
	}
	return s
}

func (p *blockParser) withTag(seg segment, e *exprParser) Stmt {
	w := WithStmt{At: seg.At}
	for e.fault == nil && e.peek().kind != tokenEnd {
		t := e.next()
		if t.kind != tokenName {
			e.fail(t, "the name of a variable is missing")
			break
		}
		e.expectOp("=")
		w.Names, w.Values = append(w.Names, t.text), append(w.Values, e.expression())
		if !e.acceptOp(",") {
			break
		}
	}
	e.end()
	p.keep(e.fault)
	var end string
	if w.Body, end = p.block([]string{"endwith"}); end == "" {
		p.unclosed(seg, "endwith")
	}
	return w
}
