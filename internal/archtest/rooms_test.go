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
	ceilingSlackMax = 400 // a ceiling further above what is there is to be lowered
)

// ceilings are of packages that are larger than they should be. None may grow beyond its ceiling, which is lowered with each
// part that gets a package of its own.
var ceilings = map[string]int{}

// methodCeilings are of types with too many methods, by package and name.
var methodCeilings = map[string]int{
	"internal/scenario.parser": 50,
	"internal/jinja.machine":   39,
	"internal/lab.Lab":         35,
	"internal/fio/iojob.clone": 33,
}

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
	checkCeilings(t, "lines", lines, packageLinesMax, ceilings, ceilingSlackMax)
	checkCeilings(t, "methods", methods, typeMethodsMax, methodCeilings, 0)
}

// checkCeilings wants everything at or below most, or at or not far below its own ceiling.
func checkCeilings(t *testing.T, what string, counts map[string]int, most int, own map[string]int, slack int) {
	t.Helper()
	for place, n := range counts {
		ceiling, listed := own[place]
		switch {
		case !listed && n > most:
			t.Errorf("%s: %d %s, want at most %d", place, n, what, most)
		case listed && n > ceiling:
			t.Errorf("%s: %d %s, want at most its ceiling of %d, and no more than %d one day", place, n, what, ceiling, most)
		case listed && n <= most:
			t.Errorf("%s: %d %s: it needs no ceiling any more", place, n, what)
		case listed && n < ceiling-slack:
			t.Errorf("%s: %d %s: lower its ceiling of %d", place, n, what, ceiling)
		}
	}
	for place := range own {
		if counts[place] == 0 {
			t.Errorf("%s has a ceiling and is not there", place)
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
