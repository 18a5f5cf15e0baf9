package jinja

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// checker finds undefined names before rendering, so that all of them are reported at once.
type checker struct {
	known  map[string]bool // of the template: variables and functions
	faults []syntax.Fault
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

func checkNames(body []syntax.Stmt, variables map[string]any) []syntax.Fault {
	c := &checker{known: map[string]bool{}}
	for name := range globals(variables).names {
		c.known[name] = true
	}
	c.statements(body, (*scopeNames)(nil).child())
	return c.faults
}

func (c *checker) statements(body []syntax.Stmt, scope *scopeNames) {
	for _, s := range body {
		switch s := s.(type) {
		case syntax.OutputStmt:
			c.expr(s.X, scope)
		case syntax.IfStmt:
			c.expr(s.Cond, scope)
			c.statements(s.Then, scope)
			c.statements(s.More, scope)
		case syntax.ForStmt:
			c.expr(s.Iter, scope)
			inner := scope.child()
			for _, name := range s.Targets {
				inner.names[name] = true
			}
			c.expr(s.Cond, inner)
			inner.names["loop"] = true
			c.statements(s.Body, inner)
			c.statements(s.More, scope.child())
		case syntax.SetStmt:
			c.expr(s.X, scope)
			c.statements(s.Body, scope.child())
			if s.Attribute != "" {
				if len(s.Targets) == 1 {
					c.expr(syntax.NameExpr{At: s.At, Name: s.Targets[0]}, scope)
				}
				continue
			}
			for _, name := range s.Targets {
				scope.names[name] = true
			}
		case syntax.WithStmt:
			inner := scope.child()
			for i, name := range s.Names {
				c.expr(s.Values[i], scope)
				inner.names[name] = true
			}
			c.statements(s.Body, inner)
		}
	}
}

func (c *checker) exprs(xs []syntax.Expr, scope *scopeNames) {
	for _, x := range xs {
		c.expr(x, scope)
	}
}

func (c *checker) expr(x syntax.Expr, scope *scopeNames) {
	switch x := x.(type) {
	case syntax.NameExpr:
		if !c.known[x.Name] && !scope.has(x.Name) {
			c.undefined(x, scope)
		}
	case syntax.ListExpr:
		c.exprs(x.Items, scope)
	case syntax.DictExpr:
		c.exprs(x.Keys, scope)
		c.exprs(x.Values, scope)
	case syntax.UnaryExpr:
		c.expr(x.X, scope)
	case syntax.NotExpr:
		c.expr(x.X, scope)
	case syntax.BinaryExpr:
		c.exprs([]syntax.Expr{x.Left, x.Right}, scope)
	case syntax.LogicExpr:
		c.exprs([]syntax.Expr{x.Left, x.Right}, scope)
	case syntax.CompareExpr:
		c.expr(x.First, scope)
		c.exprs(x.Rest, scope)
	case syntax.CondExpr:
		c.exprs([]syntax.Expr{x.Cond, x.Then, x.Other}, scope)
	case syntax.AttrExpr:
		c.expr(x.X, scope)
	case syntax.ItemExpr:
		c.exprs([]syntax.Expr{x.X, x.Index}, scope)
	case syntax.SliceExpr:
		c.exprs([]syntax.Expr{x.X, x.Low, x.High, x.Step}, scope)
	case syntax.CallExpr:
		c.expr(x.Fn, scope)
		c.exprs(x.Args.All(), scope)
	case syntax.FilterExpr:
		c.guarded(x.X, x.Name == "default" || x.Name == "d", scope)
		c.exprs(x.Args.All(), scope)
	case syntax.TestExpr:
		c.guarded(x.X, x.Name == "defined" || x.Name == "undefined", scope)
		c.exprs(x.Args.All(), scope)
	}
}

// guarded skips a bare name if the template itself tests whether it is defined.
func (c *checker) guarded(x syntax.Expr, asks bool, scope *scopeNames) {
	if _, bare := x.(syntax.NameExpr); bare && asks {
		return
	}
	c.expr(x, scope)
}

func (c *checker) undefined(x syntax.NameExpr, scope *scopeNames) {
	f := x.Fault("undefined-name", fmt.Sprintf("unknown variable %q", syntax.Shorten(x.Name)), "")
	f.Subject = x.Name
	choices := maps.Clone(c.known)
	for s := scope; s != nil; s = s.parent {
		maps.Copy(choices, s.names)
	}
	f.Choices = slices.Sorted(maps.Keys(choices))
	c.faults = append(c.faults, *f)
}
