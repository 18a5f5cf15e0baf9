package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A part of the soak runs each package that leaves tests to it; otherwise they run nowhere.
func TestSoakRunsWhatIsLeftToIt(t *testing.T) {
	tree := parse(t)
	makefile, err := os.ReadFile(filepath.Join(tree.Root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, parts, found := strings.Cut(string(makefile), "\nSOAK_PARTS ")
	if !found {
		t.Fatal("the Makefile has no SOAK_PARTS")
	}
	run, leaving := strings.Fields(parts), map[string]bool{}
	for _, f := range tree.Files {
		if f.Test && leavesToSoak(f.Tree) && f.Folder() != "internal/testreq" {
			leaving[f.Folder()] = true
		}
	}
	for folder := range leaving {
		if !slices.Contains(run, "./"+folder) {
			t.Errorf("%s leaves tests to the soak, and no part of it in the Makefile runs ./%s", folder, folder)
		}
	}
	if len(leaving) < 10 {
		t.Errorf("only %d packages leave tests to the soak", len(leaving))
	}
}

// leavesToSoak reports whether a file skips tests for the soak, or marks rehearsals with Soak: true.
func leavesToSoak(tree *ast.File) (yes bool) {
	skips := []string{"testreq.Soak", "testreq.Rounds", "testreq.CloudImage", "testreq.OVA", "programtest.SoakOnly"}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				yes = yes || slices.Contains(skips, of.Name+"."+n.Sel.Name)
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			yes = yes || ok && key.Name == "Soak"
		}
		return !yes
	})
	return yes
}
