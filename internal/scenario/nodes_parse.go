package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// parseNodeExpr reads the arithmetic of one bound; nil means that the bound is omitted.
func parseNodeExpr(text string) (*nodeExpr, error) {
	p := nodeParser{rest: text}
	if p.peek() == 0 {
		return nil, nil
	}
	e, err := p.sum(0)
	if err != nil {
		return nil, err
	}
	if c := p.peek(); c != 0 {
		return nil, fmt.Errorf("unexpected %q", p.rest)
	}
	return e, nil
}

type nodeParser struct{ rest string }

// peek skips blanks and returns the next byte, 0 at the end.
func (p *nodeParser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *nodeParser) sum(depth int) (*nodeExpr, error) {
	return p.chain(depth, "+-", p.product)
}

func (p *nodeParser) product(depth int) (*nodeExpr, error) {
	return p.chain(depth, "*/", p.factor)
}

// chain reads operands joined by any of the operators, from left to right.
func (p *nodeParser) chain(depth int, operators string, operand func(int) (*nodeExpr, error)) (*nodeExpr, error) {
	left, err := operand(depth)
	for err == nil {
		op := p.peek()
		if op == 0 || strings.IndexByte(operators, op) < 0 {
			return left, nil
		}
		p.rest = p.rest[1:]
		if op == '/' {
			p.rest = strings.TrimPrefix(p.rest, "/")
		}
		var right *nodeExpr
		if right, err = operand(depth); err == nil {
			left = &nodeExpr{op: op, left: left, right: right}
		}
	}
	return nil, err
}

func (p *nodeParser) factor(depth int) (*nodeExpr, error) {
	if depth > nodeDepthMax {
		return nil, fmt.Errorf("more than %d brackets and signs", nodeDepthMax)
	}
	c := p.peek()
	switch {
	case c == 0:
		return nil, fmt.Errorf("a number is missing at the end")
	case c == 'n':
		p.rest = p.rest[1:]
		return &nodeExpr{op: 'n'}, nil
	case c == '-' || c == '+':
		p.rest = p.rest[1:]
		e, err := p.factor(depth + 1)
		if err != nil || c == '+' {
			return e, err
		}
		return &nodeExpr{op: '-', left: &nodeExpr{op: '0'}, right: e}, nil
	case c == '(':
		p.rest = p.rest[1:]
		e, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, fmt.Errorf("a closing bracket is missing")
		}
		p.rest = p.rest[1:]
		return e, nil
	case c >= '0' && c <= '9':
		digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
		p.rest = p.rest[len(digits):]
		v, err := strconv.Atoi(digits)
		if err != nil || v > nodeNumberMax {
			return nil, fmt.Errorf("the number %s is too large", digits)
		}
		return &nodeExpr{op: '0', value: v}, nil
	}
	return nil, fmt.Errorf("unexpected %q", p.rest)
}
