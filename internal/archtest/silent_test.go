package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/archtest/source"
)

// A test that does not run says so: it skips with its reason, and does not return or leave out subtests because of -short, of a variable of
// the environment or of a program. Otherwise it counts as passed after 0.00 s.
func TestNoTestPassesWithoutRunning(t *testing.T) {
	tree := parse(t)
	var files []source.File
	for _, f := range tree.Files {
		if slices.ContainsFunc(f.Tree.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) {
			files = append(files, f)
		}
	}
	for _, n := range silent(files) {
		t.Errorf("%s: skip in place of leaving out the test: testreq.Soak for what only the soak runs, testreq.Skip, or t.Skip under testing.Short()",
			tree.Position.Position(n.Pos()))
	}
}

// The rule sees what it looks for, and nothing else: above all not the tests that are executed again as another process.
func TestSilentTestsAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`if testing.Short() { return }; work()`:                                                                    1,
		`if os.Getenv("X") == "" { t.Log("part of the soak"); return }; work()`:                                    1,
		`if _, ok := os.LookupEnv("X"); !ok { return }; work()`:                                                    1,
		`path := os.Getenv("X"); if path == "" { return }; work()`:                                                 1,
		`work(); if !soak() || x { return }; work()`:                                                               1,
		`if !wanted() { return }; work()`:                                                                          1,
		`if _, err := exec.LookPath("fio"); err != nil { return }; work()`:                                         1,
		`if runtime.GOOS != "linux" { return }; work()`:                                                            1,
		`t.Run("x", func(t *testing.T) { if testing.Short() { return }; work() })`:                                 1,
		`for range 3 { if testing.Short() { continue }; t.Run("x", func(t *testing.T) {}) }`:                       1,
		`if os.Getenv("X") != "" { t.Run("x", func(t *testing.T) {}) }`:                                            1,
		`if os.Getenv("X") != "" { work() }`:                                                                       1,
		`if os.Getenv("BRAGG_TEST_X") != "" { child(); return }; work()`:                                           0,
		`if text := os.Getenv("X"); text != "" { os.Exit(child(text)) }; work()`:                                   0,
		`if os.Getenv("X") == "" { t.Skip("no x") }; work()`:                                                       0,
		`if os.Getenv("X") == "" { testreq.Skip(t, "no x"); return }; work()`:                                      0,
		`if err != nil { return }; work()`:                                                                         0,
		`n := 10; if testing.Short() { n = 1 }; work(n)`:                                                           0,
		`if os.Getenv("X") != "" { more() }; work()`:                                                               0,
		`for range 3 { work(); if testing.Short() { continue }; more() }`:                                          0,
		`if text := os.Getenv("X"); text != "" { t.Run("x", nil) } else { t.Run("y", nil) }`:                       0,
		`if os.Getenv("X") != "" { t.Run("x", func(t *testing.T) {}); return }; t.Run("y", func(t *testing.T) {})`: 0,
		`if path := program(t); path == "" { return }; work()`:                                                     0,
		`for range 3 { if os.Getenv("X") != "" { work() } }`:                                                       0,
		`work(); if testing.Short() { return }`:                                                                    0,
		`rapid.Check(t, func(t *rapid.T) { if os.Getenv("X") == "" { return }; work() })`:                          0,
		`for range 3 { if x { continue }; t.Run("x", func(t *testing.T) { testing.Short() })}`:                     0,
	} {
		text := "package x\nfunc soak() bool { return os.Getenv(\"X\") != \"\" }\nfunc wanted() bool { return !soak() }\nfunc program(t *testing.T) string { if os.Getenv(\"X\") == \"\" { t.Skip(\"x\") }; return \"x\" }\nfunc TestX(t *testing.T) {\n" + body + "\n}"
		tree, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(silent([]source.File{{Path: "x/x_test.go", Tree: tree, Test: true}})); got != want {
			t.Errorf("%s: %d found, want %d", body, got, want)
		}
	}
}

// silent returns the statements by which tests leave themselves or subtests out without a word.
func silent(files []source.File) (found []ast.Node) {
	asked := environmental(files)
	for _, f := range files {
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.FuncDecl:
				if isTestName(n.Name.Name) && takesTest(n.Type) {
					body = n.Body
				}
			case *ast.FuncLit:
				if takesTest(n.Type) {
					body = n.Body
				}
			}
			if body != nil {
				s := &silence{asked: asked, folder: f.Folder()}
				found = append(found, s.in(body)...)
				if len(body.List) == 1 {
					found = append(found, s.only(body.List[0])...)
				}
			}
			return true
		})
	}
	return found
}

func isTestName(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Fuzz")
}

// takesTest reports whether a function has a parameter of type *testing.T, B or F.
func takesTest(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		s, ok := star.X.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		of, ok := s.X.(*ast.Ident)
		return ok && of.Name == "testing"
	})
}

// outside are what tests depend on beside their code.
var outside = []string{"os.Getenv", "os.LookupEnv", "os.Geteuid", "testing.Short", "exec.LookPath", "runtime.GOOS", "runtime.GOARCH"}

// environmental returns the functions that return what outside says, as "folder.name" and, for callers elsewhere, "package.Name".
func environmental(files []source.File) map[string]bool {
	known := map[string]bool{}
	for before := -1; before != len(known); {
		before = len(known)
		for _, f := range files {
			for _, d := range f.Tree.Decls {
				function, ok := d.(*ast.FuncDecl)
				if !ok || function.Body == nil || function.Recv != nil || !returnsOne(function.Type, "bool", "string") {
					continue
				}
				if (&silence{asked: known, folder: f.Folder()}).depends(function.Body) && !speaks(function.Body) {
					known[f.Folder()+"."+function.Name.Name] = true
					known[f.Tree.Name.Name+"."+function.Name.Name] = true
				}
			}
		}
	}
	return known
}

// speaks reports whether a function skips or fails for what is missing, so that its callers need not.
func speaks(body *ast.BlockStmt) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name := ""
			switch of := call.Fun.(type) {
			case *ast.Ident:
				name = of.Name
			case *ast.SelectorExpr:
				name = of.Sel.Name
			}
			yes = yes || slices.Contains([]string{"Skip", "Skipf", "SkipNow", "Soak", "Fatal", "Fatalf"}, name)
		}
		return !yes
	})
	return yes
}

func returnsOne(f *ast.FuncType, types ...string) bool {
	if f.Results.NumFields() != 1 {
		return false
	}
	of, ok := f.Results.List[0].Type.(*ast.Ident)
	return ok && slices.Contains(types, of.Name)
}

// silence looks through one function.
type silence struct {
	asked  map[string]bool // functions that are environmental
	folder string
	held   []string // variables with what they returned
}

// depends reports whether a node depends on the environment, in itself or by a variable. Functions in it do not count.
func (s *silence) depends(n ast.Node) (yes bool) {
	if n == nil {
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				name := of.Name + "." + n.Sel.Name
				yes = yes || s.asked[name] || slices.Contains(outside, name)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.Ident); ok {
				yes = yes || s.asked[s.folder+"."+called.Name]
			}
		case *ast.Ident:
			yes = yes || slices.Contains(s.held, n.Name)
		}
		return !yes
	})
	return yes
}

// note remembers variables that get a value of the environment.
func (s *silence) note(n ast.Stmt) {
	if a, ok := n.(*ast.AssignStmt); ok && slices.ContainsFunc(a.Rhs, func(e ast.Expr) bool { return s.depends(e) }) {
		for _, left := range a.Lhs {
			if name, ok := left.(*ast.Ident); ok && name.Name != "_" {
				s.held = append(s.held, name.Name)
			}
		}
	}
}

// in returns the statements of a block that leave out the rest of it, and those of its loops that leave out subtests.
func (s *silence) in(block *ast.BlockStmt) (found []ast.Node) {
	for i, statement := range block.List {
		s.note(statement)
		switch n := statement.(type) {
		case *ast.IfStmt:
			if s.condition(n) && n.Else == nil && (leavesOut(n, block.List[i+1:]) || hasSubtest(n.Body.List) && !returns(n.Body)) {
				found = append(found, n)
			}
		case *ast.ForStmt:
			found = append(found, s.in(n.Body)...)
		case *ast.RangeStmt:
			found = append(found, s.in(n.Body)...)
		}
	}
	return found
}

// only returns the one statement of a test if that runs nothing without something of the environment.
func (s *silence) only(statement ast.Stmt) []ast.Node {
	if n, ok := statement.(*ast.IfStmt); ok && n.Else == nil && s.condition(n) && !hasSubtest(n.Body.List) {
		return []ast.Node{n}
	}
	return nil
}

func returns(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	_, ok := b.List[len(b.List)-1].(*ast.ReturnStmt)
	return ok
}

// condition reports whether an if depends on the environment.
func (s *silence) condition(n *ast.IfStmt) bool {
	if n.Init != nil {
		before := len(s.held)
		defer func() { s.held = s.held[:before] }()
		s.note(n.Init)
	}
	return s.depends(n.Cond)
}

// leavesOut reports whether the body of an if only ends the test, which has more to do, or a turn of a loop with subtests. One that does
// something before it returns is a test in another process.
func leavesOut(n *ast.IfStmt, rest []ast.Stmt) bool {
	if len(n.Body.List) == 0 || len(rest) == 0 {
		return false
	}
	last := len(n.Body.List) - 1
	for _, statement := range n.Body.List[:last] {
		if !isLog(statement) {
			return false
		}
	}
	switch end := n.Body.List[last].(type) {
	case *ast.ReturnStmt:
		return len(end.Results) == 0
	case *ast.BranchStmt:
		return end.Tok == token.CONTINUE && hasSubtest(rest)
	}
	return false
}

func isLog(n ast.Stmt) bool {
	e, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	on, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (strings.HasPrefix(on.Sel.Name, "Log") || strings.HasPrefix(on.Sel.Name, "Print"))
}

// hasSubtest reports whether statements call Run with the function of a test.
func hasSubtest(list []ast.Stmt) (yes bool) {
	for _, statement := range list {
		ast.Inspect(statement, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if on, ok := call.Fun.(*ast.SelectorExpr); ok && on.Sel.Name == "Run" && len(call.Args) == 2 {
					f, ok := call.Args[1].(*ast.FuncLit)
					yes = yes || ok && takesTest(f.Type)
				}
			}
			return !yes
		})
	}
	return yes
}
