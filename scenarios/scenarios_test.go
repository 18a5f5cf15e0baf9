package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	loads "github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/vdbench"
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

// The loads of memory_and_cpu run one after the other: charts on the axis of the run would be empty for the most part.
func TestLoadsInTurnsShareCharts(t *testing.T) {
	for _, r := range load(t, "memory_and_cpu", scenario.Options{}).Results {
		if r.Workload != "" && r.Overlay == "" {
			t.Errorf("result %q has a chart of its own", r.Name)
		}
	}
}

// rate is too low in the first seconds of a load, by the length of its range: in steps as short as those of a rehearsal, by half and more.
func TestShareOfDatabasesHoldsForShortSteps(t *testing.T) {
	for _, r := range load(t, "db_density", scenario.Options{}).Results {
		if strings.Contains(r.Query, "scalar(") && strings.Contains(strings.ReplaceAll(r.Query, "irate(", ""), "rate(") {
			t.Errorf("result %q: %s", r.Name, r.Query)
		}
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

// The parameter files of vdbench are run by the native engine, whatever options of their scenario are chosen.
func TestShippedParameterFilesAreClear(t *testing.T) {
	const points = 7
	for _, set := range []map[string]string{nil, {"read_percent": "0"}, {"read_percent": "100", "block_size": "64k", "threads": "1"}} {
		sc := load(t, "vdbench_curve", scenario.Options{Set: set})
		w := sc.Workloads[0]
		text, err := fs.ReadFile(scenarios.FS, "vdbench_curve/"+w.ConfigFile)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := vdbench.Generator{}.Plan(loads.Workload{
			Name: w.Name, ConfigName: w.ConfigFile, Config: string(text), Options: w.Options,
			Devices: []loads.Device{{Name: "/dev/sdb", Path: filepath.Join(t.TempDir(), "sdb"), SizeBytes: 1 << 30}},
		})
		if err != nil {
			_ = diag.Render(os.Stderr, problems(err))
			t.Fatalf("%v: %v", set, err)
		}
		for _, d := range plan.Issues {
			t.Errorf("%v: %s: %s: %s", set, d.Pos, d.Severity, d.Message)
		}
		if len(plan.Jobs) != 1+points {
			t.Errorf("%v: %d runs, not the maximum and %d points", set, len(plan.Jobs), points)
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
