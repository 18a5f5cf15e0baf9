package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// The size of a room: lines of a package without its tests, and methods of one type.
const (
	packageLinesMax = 3000
	typeMethodsMax  = 30
)

// namedFile is a file as the comment of a package lists it.
var namedFile = regexp.MustCompile(`(?m)^\t([a-z0-9_]+\.go)\b`)

func TestRooms(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	lines, methods := map[string]int{}, map[string]int{}
	files := token.NewFileSet()
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		place, _ := filepath.Rel(root, filepath.Dir(path))
		place = filepath.ToSlash(place)
		lines[place] += files.File(tree.Pos()).LineCount()
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[place+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		for _, name := range namedFile.FindAllStringSubmatch(tree.Doc.Text(), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), name[1])); err != nil {
				t.Errorf("the comment of package %s lists %s, which is not there", place, name[1])
			}
		}
	}
	for place, n := range lines {
		if n > packageLinesMax {
			t.Errorf("%s: %d lines, want at most %d", place, n, packageLinesMax)
		}
	}
	for name, n := range methods {
		if n > typeMethodsMax {
			t.Errorf("%s: %d methods, want at most %d", name, n, typeMethodsMax)
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
