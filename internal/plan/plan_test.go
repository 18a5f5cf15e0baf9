package plan_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// TestReadReadsWhatIsWritten: readers of plan.json get what the run had.
func TestReadReadsWhatIsWritten(t *testing.T) {
	written := plan.Plan{
		Format: plan.Format, Scenario: plan.Scenario{Name: "s", DisplayName: "S"},
		Target: plan.Target{Provider: "fake", Nodes: []target.Node{{ID: "1", Name: "node-1"}}, Simulates: map[target.Capability]string{"migrate": "a pause"}},
		Groups: []plan.Group{{Name: "g", VCPUs: 2, Count: 1, CountFinal: 3, Disks: []plan.Disk{{Device: "/dev/sdb", SizeBytes: 1 << 30}},
			VMs: []plan.VM{{Name: "g-0001", NodeID: "1"}}, NodeIndexes: []int{0}, Counts: map[int]int{8: 1}}},
		Workloads: []plan.Workload{{Name: "w", Group: "g", Load: &load.Plan{Engine: interval.Engine{Name: "native"}, Extents: []extent.Extent{{Device: "/dev/sdb", Length: 4096, Writes: true}}}}},
		Steps: []plan.Step{{ID: 1, Phase: plan.Run, Name: "workload.Start", Args: map[string]any{"runtime_secs": 60.0}, Duration: time.Minute,
			Lasting: &plan.Lasting{Most: time.Second, Over: []plan.LastingOver{{Step: 2, Name: "test.Wait", Partly: true, After: time.Second}}}}},
		Power:    []plan.PowerOperation{{StepID: 1, Node: "node-1", Action: "off"}},
		Windows:  []string{"run"},
		Warnings: diag.List{{Code: "c", Severity: diag.SeverityWarning, Message: "m"}},
	}
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(text)
	if err != nil || !reflect.DeepEqual(*read, written) {
		t.Errorf("%v\n%+v, want\n%+v", err, read, written)
	}
}

// TestReadRefuses: a plan that cannot be read is an error, not an empty plan.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``: "unexpected end", `{"steps": [`: "unexpected end", `{"groups": 3}`: "cannot unmarshal", `{"format": 99}`: "format 99 is newer",
	} {
		if _, err := plan.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read plan: ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	p, err := plan.Read([]byte(`{"of a later version": true, "seed": 7}`))
	if err != nil || p.Seed != 7 {
		t.Errorf("%+v, %v", p, err)
	}
}
