package source

import (
	"cmp"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// LongFunctionLines is the number of lines above which a function is counted as long.
const LongFunctionLines = 50

// Package is the size of one package.
type Package struct {
	Folder    string
	Lines     int // without tests
	TestLines int
	Files     int // without tests
	Largest   string
	LargestOf int // lines of the largest file
	Long      int // functions of more than LongFunctionLines, without tests
}

// Item is a type or a function and one number of it.
type Item struct {
	Name  string // folder.Type, folder.Function or folder.Type.Method
	Count int
}

// Sizes are the measures of the product: tests and generated files are left out except in TestLines. Packages are ordered by lines,
// items by their count; the largest first.
type Sizes struct {
	Packages   []Package
	Functions  []Item // lines
	Parameters []Item
	Methods    []Item // methods of types that are not interfaces
	Fields     []Item // fields of structs
	Interfaces []Item // methods of interfaces
}

// Measure counts.
func (t *Tree) Measure() Sizes {
	packages, methods := map[string]*Package{}, map[string]int{}
	var s Sizes
	for _, f := range t.Files {
		p := packages[f.Folder()]
		if p == nil {
			p = &Package{Folder: f.Folder()}
			packages[p.Folder] = p
		}
		switch {
		case f.Generated:
		case f.Test:
			p.TestLines += f.Lines
		default:
			p.Files++
			p.Lines += f.Lines
			if f.Lines > p.LargestOf {
				p.Largest, p.LargestOf = path.Base(f.Path), f.Lines
			}
			t.measureFile(f, p, &s, methods)
		}
	}
	for _, p := range packages {
		s.Packages = append(s.Packages, *p)
	}
	for name, n := range methods {
		s.Methods = append(s.Methods, Item{name, n})
	}
	slices.SortFunc(s.Packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Folder, b.Folder))
	})
	for _, list := range [][]Item{s.Functions, s.Parameters, s.Methods, s.Fields, s.Interfaces} {
		slices.SortFunc(list, func(a, b Item) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	}
	return s
}

func (t *Tree) measureFile(f File, p *Package, s *Sizes, methods map[string]int) {
	prefix := strings.TrimPrefix(f.Folder(), "internal/") + "."
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := prefix + n.Name.Name
			if n.Recv != nil {
				of := Receiver(n.Recv.List[0].Type)
				methods[prefix+of]++
				name = prefix + of + "." + n.Name.Name
			}
			lines := t.Lines(n)
			if lines > LongFunctionLines {
				p.Long++
			}
			s.Functions = append(s.Functions, Item{name, lines})
			s.Parameters = append(s.Parameters, Item{name, n.Type.Params.NumFields()})
		case *ast.TypeSpec:
			switch of := n.Type.(type) {
			case *ast.InterfaceType:
				s.Interfaces = append(s.Interfaces, Item{prefix + n.Name.Name, of.Methods.NumFields()})
			case *ast.StructType:
				s.Fields = append(s.Fields, Item{prefix + n.Name.Name, of.Fields.NumFields()})
			}
		}
		return true
	})
}

// Receiver is the name of the type that a method belongs to.
func Receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return Receiver(e.X)
	case *ast.IndexExpr:
		return Receiver(e.X)
	case *ast.IndexListExpr:
		return Receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
