package jinja

import (
	"fmt"
	"sort"
)

// checker finds names that nothing defines, before anything runs, so that all of them are reported at once.
type checker struct {
	known  map[string]bool // of the template: variables and functions
	faults []Fault
}

// scopeNames are the names that sets and loops have defined so far, innermost last.
type scopeNames struct {
	names  map[string]bool
	parent *scopeNames
}

func (s *scopeNames) has(name string) bool {
	for ; s != nil; s = s.parent {
		if s.names[name] {
			return true
		}
	}
	return false
}

func (s *scopeNames) child() *scopeNames { return &scopeNames{names: map[string]bool{}, parent: s} }

func checkNames(body []stmt, variables map[string]any) []Fault {
	c := &checker{known: map[string]bool{}}
	for name := range globals(variables).names {
		c.known[name] = true
	}
	c.statements(body, (*scopeNames)(nil).child())
	return c.faults
}

func (c *checker) statements(body []stmt, scope *scopeNames) {
	for _, s := range body {
		switch s := s.(type) {
		case outputStmt:
			c.expr(s.x, scope)
		case ifStmt:
			c.expr(s.cond, scope)
			c.statements(s.then, scope)
			c.statements(s.more, scope)
		case forStmt:
			c.expr(s.iter, scope)
			inner := scope.child()
			for _, name := range s.targets {
				inner.names[name] = true
			}
			c.expr(s.cond, inner)
			inner.names["loop"] = true
			c.statements(s.body, inner)
			c.statements(s.more, scope.child())
		case setStmt:
			c.expr(s.x, scope)
			c.statements(s.body, scope.child())
			if s.attribute != "" {
				if len(s.targets) == 1 {
					c.expr(nameExpr{at: s.at, name: s.targets[0]}, scope)
				}
				continue
			}
			for _, name := range s.targets {
				scope.names[name] = true
			}
		case withStmt:
			inner := scope.child()
			for i, name := range s.names {
				c.expr(s.values[i], scope)
				inner.names[name] = true
			}
			c.statements(s.body, inner)
		}
	}
}

func (c *checker) exprs(xs []expr, scope *scopeNames) {
	for _, x := range xs {
		c.expr(x, scope)
	}
}

func (c *checker) expr(x expr, scope *scopeNames) {
	switch x := x.(type) {
	case nameExpr:
		if !c.known[x.name] && !scope.has(x.name) {
			c.undefined(x, scope)
		}
	case listExpr:
		c.exprs(x.items, scope)
	case dictExpr:
		c.exprs(x.keys, scope)
		c.exprs(x.values, scope)
	case unaryExpr:
		c.expr(x.x, scope)
	case notExpr:
		c.expr(x.x, scope)
	case binaryExpr:
		c.exprs([]expr{x.left, x.right}, scope)
	case logicExpr:
		c.exprs([]expr{x.left, x.right}, scope)
	case compareExpr:
		c.expr(x.first, scope)
		c.exprs(x.rest, scope)
	case condExpr:
		c.exprs([]expr{x.cond, x.then, x.other}, scope)
	case attrExpr:
		c.expr(x.x, scope)
	case itemExpr:
		c.exprs([]expr{x.x, x.index}, scope)
	case sliceExpr:
		c.exprs([]expr{x.x, x.low, x.high, x.step}, scope)
	case callExpr:
		c.expr(x.fn, scope)
		c.exprs(x.args.all(), scope)
	case filterExpr:
		c.guarded(x.x, x.name == "default" || x.name == "d", scope)
		c.exprs(x.args.all(), scope)
	case testExpr:
		c.guarded(x.x, x.name == "defined" || x.name == "undefined", scope)
		c.exprs(x.args.all(), scope)
	}
}

// guarded skips a bare name where the template itself asks whether it is defined.
func (c *checker) guarded(x expr, asks bool, scope *scopeNames) {
	if _, bare := x.(nameExpr); bare && asks {
		return
	}
	c.expr(x, scope)
}

func (c *checker) undefined(x nameExpr, scope *scopeNames) {
	f := x.fault("undefined-name", fmt.Sprintf("there is no variable %q", shorten(x.name)), "")
	f.Subject = x.name
	choices := map[string]bool{}
	for name := range c.known {
		choices[name] = true
	}
	for s := scope; s != nil; s = s.parent {
		for name := range s.names {
			choices[name] = true
		}
	}
	for name := range choices {
		f.Choices = append(f.Choices, name)
	}
	sort.Strings(f.Choices)
	c.faults = append(c.faults, *f)
}
