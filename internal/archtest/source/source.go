// Package source parses the Go files of this repository once, for the tests of the house rules and for make house.
//
// It leaves out testdata and what other modules have; it does not resolve types. What it counts:
//
//	source.go      the files, parsed
//	measure.go     sizes of packages, functions, types
//	duplicates.go  runs of lines that occur more than once
package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one parsed file.
type File struct {
	Path      string // from the root of the repository, with slashes
	Text      []byte
	Tree      *ast.File
	Lines     int
	Test      bool // its name ends with _test.go
	Generated bool
}

// Folder is the folder of the file's package, from the root.
func (f File) Folder() string { return path.Dir(f.Path) }

// Tree is all files of a repository, in the order of their paths.
type Tree struct {
	Root     string
	Position *token.FileSet
	Files    []File
}

// skipped are folders without files of this module.
var skipped = map[string]bool{"testdata": true, "bin": true, "dist": true, "build": true, "tools": true}

// Parse reads and parses the Go files below root.
func Parse(root string) (*Tree, error) {
	t := &Tree{Root: root, Position: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (skipped[entry.Name()] || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		return t.add(name)
	})
	return t, err
}

func (t *Tree) add(name string) error {
	relative, err := filepath.Rel(t.Root, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	relative = filepath.ToSlash(relative)
	parsed, err := parser.ParseFile(t.Position, relative, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, File{Path: relative, Text: text, Tree: parsed, Lines: t.Position.File(parsed.Pos()).LineCount(),
		Test: strings.HasSuffix(relative, "_test.go"), Generated: ast.IsGenerated(parsed)})
	return nil
}

// Lines is the number of lines from the first to the last of a node.
func (t *Tree) Lines(n ast.Node) int {
	return t.Position.Position(n.End()).Line - t.Position.Position(n.Pos()).Line + 1
}
