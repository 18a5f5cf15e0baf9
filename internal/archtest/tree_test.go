package archtest

import (
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/archtest/source"
	"github.com/braggdev/bragg/internal/testreq"
)

// parsed holds the files of the repository, for all tests.
var parsed struct {
	once sync.Once
	tree *source.Tree
	err  error
}

// parse returns the Go files of the repository. They are parsed once.
func parse(t *testing.T) *source.Tree {
	t.Helper()
	parsed.once.Do(func() { parsed.tree, parsed.err = source.Parse(testreq.RepositoryRoot(t)) })
	if parsed.err != nil {
		t.Fatal(parsed.err)
	}
	return parsed.tree
}

// imports lists what the files of the product import, by packages. Files for other platforms count too. Packages of tests alone are
// keys without imports.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, f := range parse(t).Files {
		list := all[f.Folder()]
		if !f.Test {
			for _, i := range f.Tree.Imports {
				list = append(list, strings.Trim(i.Path.Value, `"`))
			}
		}
		all[f.Folder()] = list
	}
	return all
}
