package planner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

var update = flag.Bool("update", false, "rewrite goldens")

// goldens calls produce for each archive of a folder and compares its answer with the archive's file "want".
func goldens(t *testing.T, folder string, produce func(t *testing.T, a *txtar.Archive) string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no goldens", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := produce(t, archive)
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if i < 0 {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				i = len(archive.Files) - 1
			}
			want := string(archive.Files[i].Data)
			if got == want {
				return
			}
			if *update {
				archive.Files[i].Data = []byte(got)
				writeFile(t, file, txtar.Format(archive))
				return
			}
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		})
	}
}

// setting is the configuration in the comment of an archive: "nodes=4 rehearse=30s without=migrate,clone power=no".
type setting struct {
	inventory    target.Inventory
	capabilities []target.Capability
	options      planner.Options
}

func readSetting(t *testing.T, comment string) setting {
	t.Helper()
	l := newLab(t, 8)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Goldens are about a target that is real, with numbers that do not change.
	inventory.Simulated, inventory.Provider, inventory.Name, inventory.Simulates = false, "lab", "lab", nil
	inventory.FreeBytes, inventory.TotalBytes, inventory.Nodes = 800<<30, 1000<<30, inventory.Nodes[:4]
	inventory.Logins = &target.Logins{}
	s := setting{inventory: inventory, capabilities: target.Capabilities(l.fake)}
	for _, word := range strings.Fields(comment) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue // prose
		}
		s.set(t, key, value)
	}
	return s
}

func (s *setting) set(t *testing.T, key, value string) {
	t.Helper()
	switch key {
	case "nodes":
		var n int
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatal(err)
		}
		s.inventory.Nodes = s.inventory.Nodes[:n]
	case "without":
		if strings.Contains(value, string(target.CapPlaybook)) {
			s.inventory.Logins = nil
		}
		s.capabilities = slices.DeleteFunc(s.capabilities, func(c target.Capability) bool {
			return slices.Contains(strings.Split(value, ","), string(c))
		})
	case "power":
		s.inventory.PowerAllowed = value == "yes"
	case "bmc":
		for i := range s.inventory.Nodes {
			s.inventory.Nodes[i].HasBMC = value == "yes"
		}
	case "templates":
		s.inventory.AnyTemplate, s.inventory.Templates = false, strings.Split(value, ",")
	case "topologies":
		s.inventory.Topologies = value == "yes"
	case "shell":
		s.options.AllowShell = value == "yes"
	case "rehearse":
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		s.options.Rehearse = d
	case "engine":
		s.options.Engine = value
	case "free":
		var gib int64
		if _, err := fmt.Sscan(value, &gib); err != nil {
			t.Fatal(err)
		}
		s.inventory.FreeBytes = gib << 30
	default:
		t.Fatalf("unknown setting %q", key)
	}
}

func fileOf(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// TestRefusals: everything that is wrong is reported at once, with the user's own lines, before anything is touched.
func TestRefusals(t *testing.T) {
	goldens(t, "compile", func(t *testing.T, a *txtar.Archive) string {
		s := readSetting(t, string(a.Comment))
		_, err := planner.Compile(plannertest.Load(t, fileOf(a, "test.yml")), s.inventory, s.capabilities, plannertest.Catalog(), s.options)
		var list *diag.ListError
		if !errors.As(err, &list) {
			t.Fatalf("compile: %v", err)
		}
		var b bytes.Buffer
		if err := diag.Render(&b, list.List); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "exit code %d\n", diag.ExitCode(err))
		return b.String()
	})
}

// TestPlanText: what `bragg plan` prints.
func TestPlanText(t *testing.T) {
	goldens(t, "plan", func(t *testing.T, a *txtar.Archive) string {
		s := readSetting(t, string(a.Comment))
		planned, err := planner.Compile(plannertest.Load(t, fileOf(a, "test.yml")), s.inventory, s.capabilities, plannertest.Catalog(), s.options)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := planned.WriteText(&b, plan.TextOptions{Commands: true}); err != nil {
			t.Fatal(err)
		}
		if err := planner.Preflight(planned); err != nil {
			fmt.Fprintf(&b, "\npreflight: %v (exit code %d)\n", err, diag.ExitCode(err))
		}
		if data, err := json.Marshal(planned); err != nil || bytes.Contains(data, []byte("null")) {
			t.Errorf("plan as JSON has a null or fails: %v\n%s", err, data)
		}
		return b.String()
	})
}
