package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/scenarios"
)

// Every shipped scenario loads with its defaults and with each of its presets and options, and its job files are read
// without a doubt.
func TestShippedScenariosLoad(t *testing.T) {
	names, err := fs.Glob(scenarios.FS, "*/test.yml")
	if err != nil || len(names) < 12 {
		t.Fatalf("found %d scenarios: %v", len(names), err)
	}
	for _, path := range names {
		name := strings.TrimSuffix(path, "/test.yml")
		t.Run(name, func(t *testing.T) {
			sc := load(t, name, scenario.Options{})
			if sc.Name != name {
				t.Errorf("the scenario in %s calls itself %s", name, sc.Name)
			}
			for _, preset := range sc.Presets {
				load(t, name, scenario.Options{Preset: preset})
			}
			for _, v := range sc.Variables {
				if fmt.Sprint(v.Default) == "0" { // what is left out without it
					load(t, name, scenario.Options{Set: map[string]string{v.Name: "1"}})
				}
				for _, option := range v.Options {
					load(t, name, scenario.Options{Set: map[string]string{v.Name: option.(string)}})
				}
			}
		})
	}
}

func load(t *testing.T, name string, options scenario.Options) *scenario.Scenario {
	t.Helper()
	folder, err := fs.Sub(scenarios.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: folder, Name: name, Trusted: true}, options)
	if err != nil {
		_ = diag.Render(os.Stderr, problems(err))
		t.Fatalf("%+v: %v", options, err)
	}
	for _, w := range sc.Warnings {
		t.Errorf("%+v: warning %s: %s", options, w.Pos, w.Message)
	}
	return sc
}

func TestShippedJobFilesAreClear(t *testing.T) {
	paths, err := fs.Glob(scenarios.FS, "*/*.fio")
	if err != nil || len(paths) == 0 {
		t.Fatal("no job files", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(scenarios.FS, path)
		if err != nil {
			t.Fatal(err)
		}
		file, found := fiojob.Parse(path, string(text), fiojob.Options{})
		found = append(found, file.Unsupported()...)
		for _, d := range found {
			t.Errorf("%s: %s: %s", d.Pos, d.Severity, d.Message)
		}
	}
}

func problems(err error) diag.List {
	var list *diag.ListError
	if errors.As(err, &list) {
		return list.List
	}
	return nil
}
