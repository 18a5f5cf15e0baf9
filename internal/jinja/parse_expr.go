package jinja

import "strconv"

// Depths of nesting that the parser follows; deeper input is refused before it can exhaust the stack.
const (
	exprDepthMax  = 60
	blockDepthMax = 30
)

// exprParser reads the tokens of one tag. The first fault stops it; later calls return at once.
type exprParser struct {
	tokens []token
	pos    int
	depth  int
	fault  *Fault
}

func (p *exprParser) peek() token { return p.tokens[p.pos] }

func (p *exprParser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

func (p *exprParser) accept(kind tokenKind, text string) bool {
	if !p.peek().is(kind, text) {
		return false
	}
	p.next()
	return true
}

func (p *exprParser) acceptOp(text string) bool { return p.accept(tokenOperator, text) }

func (p *exprParser) expectOp(text string) {
	if !p.acceptOp(text) {
		p.fail(p.peek(), "expected "+strconv.Quote(text)+" before "+describe(p.peek()))
	}
}

func (p *exprParser) fail(t token, message string) {
	if p.fault == nil {
		p.fault = t.fault("template-syntax", message, "")
		p.pos = len(p.tokens) - 1
	}
}

func describe(t token) string {
	if t.kind == tokenEnd {
		return "the end of the tag"
	}
	return strconv.Quote(shorten(t.text))
}

// end makes sure that nothing is left.
func (p *exprParser) end() {
	if t := p.peek(); t.kind != tokenEnd {
		hint := ""
		if t.is(tokenOperator, "=") {
			hint = "compare with =="
		}
		p.fail(t, "unexpected "+describe(t))
		if p.fault != nil && p.fault.Hint == "" {
			p.fault.Hint = hint
		}
	}
}

// expression reads "a if b else c" and everything below it.
func (p *exprParser) expression() expr {
	if p.depth++; p.depth > exprDepthMax {
		p.fail(p.peek(), "the expression is nested too deeply")
		return constExpr{}
	}
	defer func() { p.depth-- }()
	x := p.or()
	for p.accept(tokenName, "if") {
		c := condExpr{then: x, cond: p.or()}
		end := c.cond
		if p.accept(tokenName, "else") {
			c.other = p.expression()
			end = c.other
		}
		c.at = x.place().to(end.place())
		x = c
	}
	return x
}

func (p *exprParser) or() expr {
	x := p.and()
	for p.accept(tokenName, "or") {
		y := p.and()
		x = logicExpr{at: x.place().to(y.place()), op: "or", left: x, right: y}
	}
	return x
}

func (p *exprParser) and() expr {
	x := p.not()
	for p.accept(tokenName, "and") {
		y := p.not()
		x = logicExpr{at: x.place().to(y.place()), op: "and", left: x, right: y}
	}
	return x
}

func (p *exprParser) not() expr {
	var nots []token
	for p.peek().is(tokenName, "not") {
		nots = append(nots, p.next())
	}
	x := p.compare()
	for i := len(nots) - 1; i >= 0; i-- {
		x = notExpr{at: nots[i].to(x.place()), x: x}
	}
	return x
}

var comparisons = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true}

func (p *exprParser) compare() expr {
	x := p.sum()
	c := compareExpr{first: x}
	for {
		t := p.peek()
		switch {
		case t.kind == tokenOperator && comparisons[t.text]:
			p.next()
			c.ops = append(c.ops, t.text)
		case t.is(tokenName, "in"):
			p.next()
			c.ops = append(c.ops, "in")
		case t.is(tokenName, "not") && p.tokens[p.pos+1].is(tokenName, "in"):
			p.next()
			p.next()
			c.ops = append(c.ops, "not in")
		default:
			if len(c.ops) == 0 {
				return x
			}
			c.at = x.place().to(c.rest[len(c.rest)-1].place())
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

// binary reads a chain of operators of one rank, from left to right.
func (p *exprParser) binary(operand func() expr, ops ...string) expr {
	x := operand()
	for {
		found := ""
		for _, op := range ops {
			if p.peek().is(tokenOperator, op) {
				found = op
			}
		}
		if found == "" {
			return x
		}
		p.next()
		y := operand()
		x = binaryExpr{at: x.place().to(y.place()), op: found, left: x, right: y}
	}
}

// The ranks are Jinja's own: ~ binds closer than + and -, and ** is not right-associative.
func (p *exprParser) sum() expr     { return p.binary(p.concat, "+", "-") }
func (p *exprParser) concat() expr  { return p.binary(p.product, "~") }
func (p *exprParser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *exprParser) power() expr   { return p.binary(p.unaryFiltered, "**") }

func (p *exprParser) unaryFiltered() expr { return p.filters(p.unary()) }

func (p *exprParser) unary() expr {
	var signs []token
	for p.peek().is(tokenOperator, "-") || p.peek().is(tokenOperator, "+") {
		signs = append(signs, p.next())
		if len(signs) > exprDepthMax {
			p.fail(p.peek(), "the expression is nested too deeply")
		}
	}
	x := p.postfix(p.primary())
	for i := len(signs) - 1; i >= 0; i-- {
		x = unaryExpr{at: signs[i].to(x.place()), op: signs[i].text, x: x}
	}
	return x
}

func (p *exprParser) primary() expr {
	t := p.next()
	switch {
	case t.kind == tokenName:
		switch t.text {
		case "true", "True":
			return constExpr{t.at, true}
		case "false", "False":
			return constExpr{t.at, false}
		case "none", "None":
			return constExpr{t.at, nil}
		}
		return nameExpr{t.at, t.text}
	case t.kind == tokenNumber:
		return constExpr{t.at, t.value}
	case t.kind == tokenString:
		text, place := t.value.(string), t.at
		for p.peek().kind == tokenString {
			more := p.next()
			text += more.value.(string)
			place = place.to(more.at)
		}
		return constExpr{place, text}
	case t.is(tokenOperator, "("):
		x := p.tuple(")")
		p.expectOp(")")
		return x
	case t.is(tokenOperator, "["):
		items, _ := p.items("]")
		end := p.peek()
		p.expectOp("]")
		return listExpr{at: t.to(end.at), items: items}
	case t.is(tokenOperator, "{"):
		return p.dict(t)
	case t.kind == tokenEnd:
		p.fail(t, "an expression is missing")
	}
	p.fail(t, "unexpected "+describe(t))
	return constExpr{at: t.at}
}

// items reads expressions between commas up to closer, which stays.
func (p *exprParser) items(closer string) (items []expr, commas int) {
	for p.fault == nil && !p.peek().is(tokenOperator, closer) && p.peek().kind != tokenEnd {
		items = append(items, p.expression())
		if !p.acceptOp(",") {
			break
		}
		commas++
	}
	return items, commas
}

// tuple reads one expression, or several with commas between them as a tuple.
func (p *exprParser) tuple(closer string) expr {
	start := p.peek()
	items, commas := p.items(closer)
	if len(items) == 1 && commas == 0 {
		return items[0]
	}
	if len(items) == 0 && closer != ")" {
		p.fail(start, "an expression is missing")
	}
	return listExpr{at: start.to(p.peek().at), items: items, tuple: true}
}

func (p *exprParser) dict(open token) expr {
	d := dictExpr{at: open.at}
	for p.fault == nil && !p.peek().is(tokenOperator, "}") {
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
		if !p.acceptOp(",") {
			break
		}
	}
	d.at = open.to(p.peek().at)
	p.expectOp("}")
	return d
}

func (p *exprParser) postfix(x expr) expr {
	for p.fault == nil {
		switch {
		case p.acceptOp("."):
			t := p.next()
			switch t.kind {
			case tokenName:
				x = attrExpr{at: x.place().to(t.at), x: x, name: t.text}
			case tokenNumber:
				x = itemExpr{at: x.place().to(t.at), x: x, index: constExpr{t.at, t.value}}
			default:
				p.fail(t, "a name is missing after the dot")
			}
		case p.acceptOp("["):
			x = p.subscript(x)
		case p.peek().is(tokenOperator, "("):
			args, end := p.arguments()
			x = callExpr{at: x.place().to(end), fn: x, args: args}
		default:
			return x
		}
	}
	return x
}

func (p *exprParser) subscript(x expr) expr {
	var bounds [3]expr
	colons := 0
	for p.fault == nil && !p.peek().is(tokenOperator, "]") && p.peek().kind != tokenEnd {
		if p.acceptOp(":") {
			if colons++; colons > 2 {
				p.fail(p.peek(), "a slice has at most three parts")
			}
			continue
		}
		if bounds[colons] != nil {
			p.fail(p.peek(), "unexpected "+describe(p.peek()))
			break
		}
		bounds[colons] = p.expression()
	}
	end := p.peek()
	p.expectOp("]")
	place := x.place().to(end.at)
	if colons > 0 {
		return sliceExpr{at: place, x: x, low: bounds[0], high: bounds[1], step: bounds[2]}
	}
	if bounds[0] == nil {
		p.fail(end, "an index is missing")
		return x
	}
	return itemExpr{at: place, x: x, index: bounds[0]}
}

// arguments reads "(a, b, name=c)" and returns the place of the closing bracket.
func (p *exprParser) arguments() (arguments, at) {
	var a arguments
	p.expectOp("(")
	for p.fault == nil && !p.peek().is(tokenOperator, ")") {
		t := p.peek()
		if t.kind == tokenName && p.tokens[p.pos+1].is(tokenOperator, "=") {
			p.next()
			p.next()
			a.names = append(a.names, t.text)
			a.named = append(a.named, p.expression())
		} else if len(a.names) > 0 {
			p.fail(t, "an argument without a name stands after one with a name")
		} else {
			a.positional = append(a.positional, p.expression())
		}
		if !p.acceptOp(",") {
			break
		}
	}
	end := p.peek().at
	p.expectOp(")")
	return a, end
}

// filters reads "| name(…)", "is name" and "is not name" after an operand.
func (p *exprParser) filters(x expr) expr {
	for p.fault == nil {
		switch {
		case p.acceptOp("|"):
			x = p.filter(x)
		case p.accept(tokenName, "is"):
			x = p.test(x)
		default:
			return x
		}
	}
	return x
}

func (p *exprParser) filter(x expr) expr {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "the name of a filter is missing")
		return x
	}
	f := filterExpr{at: t.at, x: x, name: t.text}
	if table := filters(); table[t.text] == nil && p.fault == nil {
		p.fault = unknown(t.at, "filter", t.text, sortedKeys(table))
	}
	if p.peek().is(tokenOperator, "(") {
		args, end := p.arguments()
		f.args, f.at = args, t.to(end)
	}
	f.at = x.place().to(f.at)
	return f
}

func (p *exprParser) test(x expr) expr {
	negated := p.accept(tokenName, "not")
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "the name of a test is missing")
		return x
	}
	if _, ok := testTable[t.text]; !ok && p.fault == nil {
		p.fault = unknown(t.at, "test", t.text, sortedKeys(testTable))
	}
	e := testExpr{at: x.place().to(t.at), x: x, name: t.text}
	switch n := p.peek(); {
	case n.is(tokenOperator, "("):
		args, end := p.arguments()
		e.args, e.at = args, x.place().to(end)
	case n.kind == tokenNumber, n.kind == tokenString, n.is(tokenOperator, "["), n.is(tokenOperator, "{"),
		n.kind == tokenName && !isWordOperator(n.text):
		arg := p.postfix(p.primary())
		e.args.positional = []expr{arg}
		e.at = x.place().to(arg.place())
	}
	if negated {
		return notExpr{at: e.at, x: e}
	}
	return e
}

func isWordOperator(s string) bool {
	switch s {
	case "else", "or", "and", "if", "is", "in", "not":
		return true
	}
	return false
}

// unknown reports a filter, test or tag that is not there.
func unknown(place at, what, name string, choices []string) *Fault {
	f := place.fault("template-"+what, "there is no "+what+" "+strconv.Quote(shorten(name)), "")
	f.Subject, f.Choices = name, choices
	return f
}
