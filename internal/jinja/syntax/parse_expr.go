package syntax

import (
	"slices"
	"strconv"
)

// Nesting depths that the parser accepts; deeper input is refused before it can exhaust the stack.
const (
	DepthMax      = 60
	blockDepthMax = 30
)

// exprParser reads the tokens of one tag. The first fault stops it; later calls return at once.
type exprParser struct {
	tokens []token
	words  *Words
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
		p.fault = t.Fault("template-syntax", message, "")
		p.pos = len(p.tokens) - 1
	}
}

func describe(t token) string {
	if t.kind == tokenEnd {
		return "the end of the tag"
	}
	return strconv.Quote(Shorten(t.text))
}

// end reports tokens that are left over.
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
func (p *exprParser) expression() Expr {
	if p.depth++; p.depth > DepthMax {
		p.fail(p.peek(), "the expression is nested too deeply")
		return ConstExpr{}
	}
	defer func() { p.depth-- }()
	x := p.or()
	for p.accept(tokenName, "if") {
		c := CondExpr{Then: x, Cond: p.or()}
		end := c.Cond
		if p.accept(tokenName, "else") {
			c.Other = p.expression()
			end = c.Other
		}
		c.At = x.Place().to(end.Place())
		x = c
	}
	return x
}

func (p *exprParser) or() Expr {
	x := p.and()
	for p.accept(tokenName, "or") {
		y := p.and()
		x = LogicExpr{At: x.Place().to(y.Place()), Op: "or", Left: x, Right: y}
	}
	return x
}

func (p *exprParser) and() Expr {
	x := p.not()
	for p.accept(tokenName, "and") {
		y := p.not()
		x = LogicExpr{At: x.Place().to(y.Place()), Op: "and", Left: x, Right: y}
	}
	return x
}

func (p *exprParser) not() Expr {
	var nots []token
	for p.peek().is(tokenName, "not") {
		nots = append(nots, p.next())
	}
	x := p.compare()
	for i := len(nots) - 1; i >= 0; i-- {
		x = NotExpr{At: nots[i].to(x.Place()), X: x}
	}
	return x
}

var comparisons = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true}

func (p *exprParser) compare() Expr {
	x := p.sum()
	c := CompareExpr{First: x}
	for {
		t := p.peek()
		switch {
		case t.kind == tokenOperator && comparisons[t.text]:
			p.next()
			c.Ops = append(c.Ops, t.text)
		case t.is(tokenName, "in"):
			p.next()
			c.Ops = append(c.Ops, "in")
		case t.is(tokenName, "not") && p.tokens[p.pos+1].is(tokenName, "in"):
			p.next()
			p.next()
			c.Ops = append(c.Ops, "not in")
		default:
			if len(c.Ops) == 0 {
				return x
			}
			c.At = x.Place().to(c.Rest[len(c.Rest)-1].Place())
			return c
		}
		c.Rest = append(c.Rest, p.sum())
	}
}

// binary reads a chain of operators of one rank, from left to right.
func (p *exprParser) binary(operand func() Expr, ops ...string) Expr {
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
		x = BinaryExpr{At: x.Place().to(y.Place()), Op: found, Left: x, Right: y}
	}
}

// The ranks are Jinja's own: ~ binds closer than + and -, and ** is not right-associative.
func (p *exprParser) sum() Expr     { return p.binary(p.concat, "+", "-") }
func (p *exprParser) concat() Expr  { return p.binary(p.product, "~") }
func (p *exprParser) product() Expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *exprParser) power() Expr   { return p.binary(p.unaryFiltered, "**") }

func (p *exprParser) unaryFiltered() Expr { return p.filters(p.unary()) }

func (p *exprParser) unary() Expr {
	var signs []token
	for p.peek().is(tokenOperator, "-") || p.peek().is(tokenOperator, "+") {
		signs = append(signs, p.next())
		if len(signs) > DepthMax {
			p.fail(p.peek(), "the expression is nested too deeply")
		}
	}
	x := p.postfix(p.primary())
	for i := len(signs) - 1; i >= 0; i-- {
		x = UnaryExpr{At: signs[i].to(x.Place()), Op: signs[i].text, X: x}
	}
	return x
}

func (p *exprParser) primary() Expr {
	t := p.next()
	switch {
	case t.kind == tokenName:
		switch t.text {
		case "true", "True":
			return ConstExpr{t.At, true}
		case "false", "False":
			return ConstExpr{t.At, false}
		case "none", "None":
			return ConstExpr{t.At, nil}
		}
		return NameExpr{t.At, t.text}
	case t.kind == tokenNumber:
		return ConstExpr{t.At, t.value}
	case t.kind == tokenString:
		text, place := t.value.(string), t.At
		for p.peek().kind == tokenString {
			more := p.next()
			text += more.value.(string)
			place = place.to(more.At)
		}
		return ConstExpr{place, text}
	case t.is(tokenOperator, "("):
		x := p.tuple(")")
		p.expectOp(")")
		return x
	case t.is(tokenOperator, "["):
		items, _ := p.items("]")
		end := p.peek()
		p.expectOp("]")
		return ListExpr{At: t.to(end.At), Items: items}
	case t.is(tokenOperator, "{"):
		return p.dict(t)
	case t.kind == tokenEnd:
		p.fail(t, "an expression is missing")
	}
	p.fail(t, "unexpected "+describe(t))
	return ConstExpr{At: t.At}
}

// Items reads expressions between commas up to closer, which stays.
func (p *exprParser) items(closer string) (items []Expr, commas int) {
	for p.fault == nil && !p.peek().is(tokenOperator, closer) && p.peek().kind != tokenEnd {
		items = append(items, p.expression())
		if !p.acceptOp(",") {
			break
		}
		commas++
	}
	return items, commas
}

// Tuple reads one expression, or several with commas between them as a tuple.
func (p *exprParser) tuple(closer string) Expr {
	start := p.peek()
	items, commas := p.items(closer)
	if len(items) == 1 && commas == 0 {
		return items[0]
	}
	if len(items) == 0 && closer != ")" {
		p.fail(start, "an expression is missing")
	}
	return ListExpr{At: start.to(p.peek().At), Items: items, Tuple: true}
}

func (p *exprParser) dict(open token) Expr {
	d := DictExpr{At: open.At}
	for p.fault == nil && !p.peek().is(tokenOperator, "}") {
		d.Keys = append(d.Keys, p.expression())
		p.expectOp(":")
		d.Values = append(d.Values, p.expression())
		if !p.acceptOp(",") {
			break
		}
	}
	d.At = open.to(p.peek().At)
	p.expectOp("}")
	return d
}

func (p *exprParser) postfix(x Expr) Expr {
	for p.fault == nil {
		switch {
		case p.acceptOp("."):
			t := p.next()
			switch t.kind {
			case tokenName:
				x = AttrExpr{At: x.Place().to(t.At), X: x, Name: t.text}
			case tokenNumber:
				x = ItemExpr{At: x.Place().to(t.At), X: x, Index: ConstExpr{t.At, t.value}}
			default:
				p.fail(t, "a name is missing after the dot")
			}
		case p.acceptOp("["):
			x = p.subscript(x)
		case p.peek().is(tokenOperator, "("):
			args, end := p.arguments()
			x = CallExpr{At: x.Place().to(end), Fn: x, Args: args}
		default:
			return x
		}
	}
	return x
}

func (p *exprParser) subscript(x Expr) Expr {
	var bounds [3]Expr
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
	place := x.Place().to(end.At)
	if colons > 0 {
		return SliceExpr{At: place, X: x, Low: bounds[0], High: bounds[1], Step: bounds[2]}
	}
	if bounds[0] == nil {
		p.fail(end, "an index is missing")
		return x
	}
	return ItemExpr{At: place, X: x, Index: bounds[0]}
}

// Arguments reads "(a, b, name=c)" and returns the place of the closing bracket.
func (p *exprParser) arguments() (Arguments, At) {
	var a Arguments
	p.expectOp("(")
	for p.fault == nil && !p.peek().is(tokenOperator, ")") {
		t := p.peek()
		if t.kind == tokenName && p.tokens[p.pos+1].is(tokenOperator, "=") {
			p.next()
			p.next()
			a.Names = append(a.Names, t.text)
			a.Named = append(a.Named, p.expression())
		} else if len(a.Names) > 0 {
			p.fail(t, "an argument without a name stands after one with a name")
		} else {
			a.Positional = append(a.Positional, p.expression())
		}
		if !p.acceptOp(",") {
			break
		}
	}
	end := p.peek().At
	p.expectOp(")")
	return a, end
}

// filters reads "| name(…)", "is name" and "is not name" after an operand.
func (p *exprParser) filters(x Expr) Expr {
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

func (p *exprParser) filter(x Expr) Expr {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "the name of a filter is missing")
		return x
	}
	f := FilterExpr{At: t.At, X: x, Name: t.text}
	if !slices.Contains(p.words.Filters, t.text) && p.fault == nil {
		p.fault = Unknown(t.At, "filter", t.text, p.words.Filters)
	}
	if p.peek().is(tokenOperator, "(") {
		args, end := p.arguments()
		f.Args, f.At = args, t.to(end)
	}
	f.At = x.Place().to(f.At)
	return f
}

func (p *exprParser) test(x Expr) Expr {
	negated := p.accept(tokenName, "not")
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "the name of a test is missing")
		return x
	}
	if !slices.Contains(p.words.Tests, t.text) && p.fault == nil {
		p.fault = Unknown(t.At, "test", t.text, p.words.Tests)
	}
	e := TestExpr{At: x.Place().to(t.At), X: x, Name: t.text}
	switch n := p.peek(); {
	case n.is(tokenOperator, "("):
		args, end := p.arguments()
		e.Args, e.At = args, x.Place().to(end)
	case n.kind == tokenNumber, n.kind == tokenString, n.is(tokenOperator, "["), n.is(tokenOperator, "{"),
		n.kind == tokenName && !isWordOperator(n.text):
		arg := p.postfix(p.primary())
		e.Args.Positional = []Expr{arg}
		e.At = x.Place().to(arg.Place())
	}
	if negated {
		return NotExpr{At: e.At, X: e}
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

// Unknown reports an unknown filter, test or tag.
func Unknown(place At, what, name string, choices []string) *Fault {
	f := place.Fault("template-"+what, "unknown "+what+" "+strconv.Quote(Shorten(name)), "")
	f.Subject, f.Choices = name, choices
	return f
}
