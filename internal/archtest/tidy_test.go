package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// The budgets of the house. Test files and tables may be longer; a test function may too.
const (
	fileLinesMax        = 500
	functionLinesMax    = 70
	parametersMax       = 5
	interfaceMethodsMax = 5
)

// exceptions holds one line for each place that may break a budget, and its reason.
var exceptions = map[string]string{}

var bannedPackageNames = map[string]bool{
	"lib": true, "common": true, "util": true, "utils": true, "core": true, "types": true, "manager": true, "helpers": true,
}

func TestBudgets(t *testing.T) {
	used := map[string]bool{}
	report := func(place, format string, args ...any) {
		if _, ok := exceptions[place]; ok {
			used[place] = true
			return
		}
		t.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
	}
	files := token.NewFileSet()
	for _, path := range goFiles(t) {
		relative, _ := filepath.Rel(testreq.RepositoryRoot(t), path)
		tree, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(tree) {
			continue
		}
		isTest := strings.HasSuffix(path, "_test.go")
		if lines := files.File(tree.Pos()).LineCount(); lines > fileLinesMax && !isTest {
			report(relative, "%d lines, want at most %d", lines, fileLinesMax)
		}
		if bannedPackageNames[tree.Name.Name] {
			report(relative, "a package is named for a thing, not %q", tree.Name.Name)
		}
		if !isTest {
			checkDeclarations(files, tree, relative, report)
		}
	}
	for place := range exceptions {
		if !used[place] {
			t.Errorf("the exception for %s is not needed any more", place)
		}
	}
}

func checkDeclarations(files *token.FileSet, tree *ast.File, path string, report func(string, string, ...any)) {
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			place := path + ":" + n.Name.Name
			if n.Body != nil {
				lines := files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1
				if lines > functionLinesMax {
					report(place, "%d lines, want at most %d", lines, functionLinesMax)
				}
			}
			if count := n.Type.Params.NumFields(); count > parametersMax {
				report(place, "%d parameters, want at most %d", count, parametersMax)
			}
			if n.Name.Name == "init" && n.Recv == nil {
				report(place, "no init functions: lists are explicit")
			}
		case *ast.TypeSpec:
			if i, ok := n.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > interfaceMethodsMax {
				report(path+":"+n.Name.Name, "%d methods, want at most %d", i.Methods.NumFields(), interfaceMethodsMax)
			}
		}
		return true
	})
}

// leftovers are words that say work was not finished.
var leftovers = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|not implemented`)

func TestNothingIsLeftOver(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	for _, path := range goFiles(t) {
		relative, _ := filepath.Rel(root, path)
		if strings.HasPrefix(relative, filepath.Join("internal", "archtest")) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if found := leftovers.FindString(line); found != "" {
				t.Errorf("%s:%d: %q", relative, number, found)
			}
		}
	}
}

// Every package says in one comment what it is.
func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	files := token.NewFileSet()
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || tree.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no package comment", dir)
		}
	}
}

func goFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	root := testreq.RepositoryRoot(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata" ||
			entry.Name() == "bin" || entry.Name() == "dist" || entry.Name() == "tools") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
