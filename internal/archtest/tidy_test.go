package archtest

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/archtest/source"
)

// functionLinesMax is the longest function of the product; functions of tests may be longer. Other sizes have no limit: when lines of
// packages and files, methods, fields and parameters had one, many packages and types grew right up to them, and objects were cut into
// parts that point to each other. `make house` prints them.
const functionLinesMax = 70

// duplicatesMax is the number of runs of lines that occur more than once, as `make house` prints it. It may only be lowered.
const duplicatesMax = 91

var bannedPackageNames = map[string]bool{
	"lib": true, "common": true, "util": true, "utils": true, "core": true, "types": true, "manager": true, "helpers": true,
}

func TestFunctionsAreShort(t *testing.T) {
	tree := parse(t)
	for _, f := range tree.Files {
		if f.Generated {
			continue
		}
		if bannedPackageNames[f.Tree.Name.Name] {
			t.Errorf("%s: a package is named for a thing, not %q", f.Path, f.Tree.Name.Name)
		}
		if f.Test {
			continue
		}
		for _, d := range f.Tree.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := tree.Lines(function); lines > functionLinesMax {
				t.Errorf("%s: %s has %d lines, want at most %d", f.Path, function.Name.Name, lines, functionLinesMax)
			}
			if function.Name.Name == "init" && function.Recv == nil {
				t.Errorf("%s: no init functions: lists are explicit", f.Path)
			}
		}
	}
}

func TestDuplicatesOnlyFall(t *testing.T) {
	if n := len(parse(t).Duplicates()); n > duplicatesMax {
		t.Errorf("%d runs of %d lines or more occur more than once, want at most %d: make house lists the longest (ROWS=100 lists more)",
			n, source.DuplicateLinesMin, duplicatesMax)
	}
}

// leftovers are words that say work was not finished.
var leftovers = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|not implemented`)

func TestNothingIsLeftOver(t *testing.T) {
	for _, f := range parse(t).Files {
		if strings.HasPrefix(f.Path, "internal/archtest/") {
			continue
		}
		for _, found := range leftovers.FindAllIndex(f.Text, -1) {
			t.Errorf("%s:%d: %q", f.Path, 1+bytes.Count(f.Text[:found[0]], []byte("\n")), f.Text[found[0]:found[1]])
		}
	}
}

// Every package says in one comment what it is, and the files that the comment lists are there.
func TestPackagesAreDocumented(t *testing.T) {
	tree := parse(t)
	documented := map[string]bool{}
	for _, f := range tree.Files {
		if f.Test {
			continue
		}
		documented[f.Folder()] = documented[f.Folder()] || f.Tree.Doc != nil
		for _, name := range namedFile.FindAllStringSubmatch(f.Tree.Doc.Text(), -1) {
			if _, err := os.Stat(filepath.Join(tree.Root, f.Folder(), name[1])); err != nil {
				t.Errorf("the comment of package %s lists %s, which is not there", f.Folder(), name[1])
			}
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no package comment", folder)
		}
	}
}

// namedFile is a file as the comment of a package lists it.
var namedFile = regexp.MustCompile(`(?m)^\t([a-z0-9_]+\.go)\b`)
