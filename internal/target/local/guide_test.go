package local_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/load/builtin"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/verb"
)

// The table of the guide says of every step what the program does with it.
func TestGuideTellsTheTruth(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "docs", "guides", "local-target.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[A-Za-z]+)` \\| (real|simulated|not offered) \\|").FindAllStringSubmatch(string(text), -1) {
		if said[row[1]] != "" {
			t.Errorf("%s is in the table twice", row[1])
		}
		said[row[1]] = row[2]
	}
	l := openAt(t, t.TempDir())
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	catalog := verb.Catalog{Steps: step.All(), Generators: builtin.Generators()}
	for _, kind := range step.All() {
		if got, want := said[kind.Name], treatment(t, kind, catalog, l, inventory); got != want {
			t.Errorf("%s is %s, the guide says %q", kind.Name, want, got)
		}
		delete(said, kind.Name)
	}
	if len(said) > 0 {
		t.Errorf("the guide has steps that do not exist: %v", said)
	}
}

// treatment finds out what the local target does with a step by planning its example.
func treatment(t *testing.T, kind verb.Kind, catalog verb.Catalog, l target.Target, inventory target.Inventory) string {
	t.Helper()
	folder := fstest.MapFS{"test.yml": {Data: []byte(kind.Example)}, "load.fio": {Data: []byte(example.Job)}, "site.yml": {Data: []byte(example.Playbook)}}
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: folder, Name: kind.Name, Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatalf("%s: %v", kind.Name, err)
	}
	_, err = planner.Compile(sc, inventory, target.Capabilities(l), catalog, planner.Options{})
	switch {
	case err != nil && strings.Contains(err.Error(), kind.Name):
		return "not offered"
	case err != nil:
		t.Fatalf("%s: %v", kind.Name, err)
	}
	for _, need := range kind.Needs {
		if inventory.Simulates[need] != "" {
			return "simulated"
		}
	}
	return "real"
}
