package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// A test skips for what the machine lacks through package testreq, which fails where everything is required, and by itself
// only under -short. So no skip can hide where it counts.
func TestSkipsCannotHide(t *testing.T) {
	tree := parse(t)
	for _, f := range tree.Files {
		if f.Path == "internal/testreq/testreq.go" || !slices.ContainsFunc(f.Tree.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) {
			continue // rigs of tests import it too
		}
		for _, call := range hiddenSkips(f.Tree) {
			t.Errorf("%s: skip with testreq.Skip, which fails where everything is required, or under testing.Short()", tree.Position.Position(call.Pos()))
		}
	}
}

// The rule sees what it looks for.
func TestHiddenSkipsAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`t.Skip("x")`: 1, `if err != nil { t.Skipf("%v", err) }`: 1, `for { t.SkipNow() }`: 1,
		`if testing.Short() { t.Skip("long") }`: 0, `if testing.Short() && x { t.Skip("long") }`: 0,
		`if x { } else if testing.Short() { t.Skip("long") }`:               0,
		`if testing.Short() || x { t.Skip("x") }`:                           1,
		`if !testing.Short() { t.Skip("x") }`:                               1,
		`if testing.Short() { } else { t.Skip("x") }`:                       1,
		`rapid.Check(t, func(t *rapid.T) { if x { t.Skip("not drawn") } })`: 0,
		`t.Run("x", func(t *testing.T) { t.Skip("x") })`:                    1,
		`testreq.Skip(t, "x")`:                                              0,
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\nfunc TestX(t *testing.T) {\n"+body+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(hiddenSkips(tree)); got != want {
			t.Errorf("%s: %d found, want %d", body, got, want)
		}
	}
}

// hiddenSkips returns calls of Skip, Skipf and SkipNow of a test that do not stand under testing.Short(). Those of rapid
// reject what was drawn, and it fails when too many are.
func hiddenSkips(tree *ast.File) (found []*ast.CallExpr) {
	var stack []ast.Node
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if call, ok := n.(*ast.CallExpr); ok && isSkip(call) && !underShort(append(stack, n)) && !ofRapid(stack) {
			found = append(found, call)
		}
		stack = append(stack, n)
		return true
	})
	return found
}

func isSkip(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Skip" && s.Sel.Name != "Skipf" && s.Sel.Name != "SkipNow" {
		return false
	}
	on, ok := s.X.(*ast.Ident)
	return !ok || on.Name != "testreq"
}

// underShort reports whether the last node is in the body of an if whose condition needs testing.Short().
func underShort(stack []ast.Node) bool {
	for i, n := range stack[:len(stack)-1] {
		if branch, ok := n.(*ast.IfStmt); ok && stack[i+1] == branch.Body && needsShort(branch.Cond) {
			return true
		}
	}
	return false
}

func needsShort(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.LAND && (needsShort(e.X) || needsShort(e.Y))
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Short"
	}
	return false
}

// ofRapid reports whether the innermost function around is a property of rapid.
func ofRapid(stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		f, ok := stack[i].(*ast.FuncLit)
		if !ok {
			continue
		}
		for _, p := range f.Type.Params.List {
			if star, ok := p.Type.(*ast.StarExpr); ok {
				if s, ok := star.X.(*ast.SelectorExpr); ok {
					x, ok := s.X.(*ast.Ident)
					return ok && x.Name == "rapid"
				}
			}
		}
	}
	return false
}
