package lint_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/scenarios"
)

var update = flag.Bool("update", false, "rewrite the golden files and the guide")

// files are the files that the examples refer to.
var files = map[string]string{
	"read.fio":      "[job]\nfilename=/dev/sdb\nrw=randread\nbs=8k\nsize=1g\n",
	"sdc.fio":       "[job]\nfilename=/dev/sdb\nrw=randread\nsize=1g\n[log]\nfilename=/dev/sdc\nrw=write\nsize=1g\n",
	"broken.fio":    "[job]\nfilename=/dev/sdb\nrw=sideways\nsize=lots\n",
	"delegated.fio": "[job]\nfilename=/dev/sdb\nrw=randread\nsize=1g\nioengine=mtd\n",
	"play.yml":      "- hosts: all\n",
}

func check(t *testing.T, path string) []finding.Finding {
	t.Helper()
	fsys := fstest.MapFS{"test.yml": {Data: readFile(t, path)}}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	sc, err := scenario.Load(context.Background(), scenario.Source{FS: fsys, Name: "example", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return lint.Check(sc, catalog)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, text, want)
	}
}

// Each rule has an example that violates it; the golden file has all findings for the example.
func TestEachRuleFindsItsExample(t *testing.T) {
	for _, rule := range lint.Rules() {
		t.Run(rule.Code, func(t *testing.T) {
			all := check(t, filepath.Join("testdata", rule.Code+".yml"))
			found := false
			for _, f := range all {
				found = found || f.Code == rule.Code || rule.Code == "reader" && f.Code == "unused-variable"
			}
			if !found {
				t.Errorf("the rule does not find its example; lint says\n%s", describe(all))
			}
			golden(t, filepath.Join("testdata", rule.Code+".golden"), describe(all))
			if rule.Summary == "" || rule.Doc == "" || rule.Severity == "" {
				t.Error("the rule lacks its summary, text or severity")
			}
		})
	}
}

func TestACleanScenarioHasNoFindings(t *testing.T) {
	if all := check(t, "testdata/clean.yml"); len(all) > 0 {
		t.Errorf("lint says\n%s", describe(all))
	}
}

func TestShippedScenariosAreClean(t *testing.T) {
	names, err := fs.Glob(scenarios.FS, "*/test.yml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no shipped scenarios: %v", err)
	}
	for _, name := range names {
		folder, err := fs.Sub(scenarios.FS, filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Load(context.Background(), scenario.Source{FS: folder, Name: filepath.Dir(name), Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range lint.Check(sc, catalog) {
			if f.Severity != finding.Info {
				t.Errorf("%s: %s", name, describe([]finding.Finding{f}))
			}
		}
	}
}

// The guide is generated from the descriptions of the rules.
func TestTheGuideListsTheRules(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# Lint rules")
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, "`bragg lint FOLDER` reports errors and likely mistakes of a scenario. It needs no target and runs nothing.")
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, "`fail`: the planner refuses the scenario. `warning`: a number of the report will be misleading or missing. `info`: for information.")
	for _, rule := range lint.Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n%s: %s %s\n", rule.Code, rule.Severity, rule.Summary, rule.Doc)
	}
	if *update {
		if err := os.MkdirAll("../../docs/guides", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "../../docs/guides/lint.md", b.String())
}
