package main

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/archtest/source"
)

// reference is a path of the repository, outside of a package, that a Go file of the package names.
type reference struct {
	folder string // of the package, from the root
	path   string // file or folder, from the root
	shared bool   // a rig for tests of other packages names it
}

// tooWide are folders that a name of which does not say anything.
var tooWide = []string{".", "internal", "cmd", "docs", "tools"}

// references finds paths in strings: those that begin with "../", those that exist from the root of the repository, and those that
// filepath.Join makes of neighboring strings. Programs of the module are named for go build by their import paths. A test that runs make
// reads the Makefile.
func references(root, module string) ([]reference, error) {
	tree, err := source.Parse(root)
	if err != nil {
		return nil, err
	}
	seen := map[reference]bool{}
	for _, f := range tree.Files {
		rig := !f.Test && slices.ContainsFunc(f.Tree.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
		note := func(text string, fromRoot bool) {
			if name, ok := resolve(root, f.Folder(), strings.TrimPrefix(text, module+"/"), fromRoot); ok {
				seen[reference{f.Folder(), name, rig}] = true
			}
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false // go list has those
			case *ast.CallExpr:
				for _, run := range runs(n.Args) {
					note(run.text, run.at > 0)
				}
			case *ast.BasicLit:
				switch text, _ := stringOf(n); {
				case strings.Contains(text, "/"):
					note(text, false)
					note(text, true)
				case text == "make" && f.Test:
					note("Makefile", true)
				}
			}
			return true
		})
	}
	all := make([]reference, 0, len(seen))
	for r := range seen {
		all = append(all, r)
	}
	return all, nil
}

// run is neighboring strings among the arguments of a call, as a path.
type run struct {
	text string
	at   int // index of the first
}

func runs(args []ast.Expr) (all []run) {
	for i := 0; i < len(args); i++ {
		begin, parts := i, []string(nil)
		for ; i < len(args); i++ {
			text, ok := stringOf(args[i])
			if !ok {
				break
			}
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			all = append(all, run{strings.Join(parts, "/"), begin})
		}
	}
	return all
}

func stringOf(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// resolve returns the path from the root that a text names: from the folder of its package, where only what is outside of it counts, or from
// the root.
func resolve(root, folder, text string, fromRoot bool) (string, bool) {
	if len(text) > 200 || strings.ContainsAny(text, " \n\x00*") || path.IsAbs(text) {
		return "", false
	}
	name := path.Clean(text)
	if !fromRoot {
		if !strings.HasPrefix(name, "../") {
			return "", false
		}
		name = path.Join(folder, name)
	}
	if strings.HasPrefix(name, "..") || slices.Contains(tooWide, name) && !strings.HasSuffix(text, "/") || name == folder || strings.HasPrefix(name, folder+"/") {
		return "", false
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		return "", false
	}
	return name, true
}
