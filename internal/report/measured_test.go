package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// TestWrittenBefore: who wrote the data of a load, and whether all of it.
func TestWrittenBefore(t *testing.T) {
	const all = 1 << 30
	on := func(device string, length int64) *load.Plan {
		return &load.Plan{Extents: []extent.Extent{{Device: device, Length: length, Writes: true}}}
	}
	at := func(endpoint string) *load.Plan {
		return &load.Plan{Program: &load.ProgramPlan{Data: []string{endpoint}}}
	}
	prefill := func(workload, group string, bytes uint64) result.LoadSummary {
		return result.LoadSummary{Workload: workload, Group: group, Prefill: true, VMs: 2, ToNanos: second, Total: interval.Traffic{Operations: 1, Bytes: bytes}}
	}
	failed := prefill("W", "G", 2*all)
	failed.Total.Errors = map[string]uint64{"EIO": 3}
	for _, tt := range []struct {
		name     string
		prefills []result.LoadSummary
		want     string

		elsewhere bool // than on disks
	}{
		{"of a load without data", nil, "", true},
		{"in a folder", []result.LoadSummary{prefill("W", "G", 2*all)}, "written by a prefill before", true},
		{"on an endpoint, of another workload", []result.LoadSummary{prefill("lab", "G", 1)}, "written by a prefill before (that of lab)", true},
		{"on an endpoint, of another one", []result.LoadSummary{prefill("elsewhere", "G", 1)}, "no prefill of this data in this run", true},
		{"in a folder, without one", nil, "no prefill of this data in this run", true},
		{"none", nil, "no prefill of this data in this run", false},
		{"own", []result.LoadSummary{prefill("W", "G", 2*all)}, "written by a prefill before", false},
		{"on one of two VMs only", []result.LoadSummary{prefill("W", "G", all)}, "the prefill before it is incomplete", false},
		{"with errors", []result.LoadSummary{failed}, "the prefill before it is incomplete", false},
		{"of another workload on the same disk", []result.LoadSummary{prefill("same", "G", 2*all)}, "written by a prefill before (that of same)", false},
		{"of half of the disk", []result.LoadSummary{prefill("half", "G", all)}, "512 MiB of 1 GiB written by a prefill before (that of half)", false},
		{"of another disk", []result.LoadSummary{prefill("other", "G", 2*all)}, "no prefill of this data in this run", false},
		{"of another group", []result.LoadSummary{prefill("same", "H", 2*all)}, "no prefill of this data in this run", false},
	} {
		p := plan.Plan{Workloads: []plan.Workload{{Name: "W", Group: "G", Load: on("/dev/sdb", all), Prefill: on("/dev/sdb", all)},
			{Name: "same", Group: "G", Prefill: on("/dev/sdb", all)}, {Name: "half", Group: "G", Prefill: on("/dev/sdb", all/2)},
			{Name: "other", Group: "G", Prefill: on("/dev/sdc", all)}, {Name: "lab", Group: "G", Prefill: at("lab")}, {Name: "elsewhere", Group: "G", Prefill: at("elsewhere")}}}
		if tt.elsewhere {
			p.Workloads[0].Load, p.Workloads[0].Prefill = at("lab"), &load.Plan{}
			p.Workloads[0].Load.Computes = tt.want == ""
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		run := &document.Run{Plan: raw, Summary: result.Summary{Ended: result.EndedCompleted}}
		run.Summary.Loads = append(tt.prefills, result.LoadSummary{Workload: "W", Group: "G", VMs: 2, FromNanos: 2 * second, ToNanos: 9 * second,
			Total: interval.Traffic{Operations: 5}})
		d := document.Build(run)
		facts := strings.Join(d.Measured[0].Facts, "; ")
		if tt.want == "" && !strings.Contains(facts, "prefill") {
			continue
		}
		if len(d.Measured) != 1 || !strings.Contains("; "+strings.Join(d.Measured[0].Facts, "; ")+";", "; "+tt.want+";") {
			t.Errorf("%s: %+v, want %q", tt.name, d.Measured, tt.want)
		}
	}
}

func TestOwnData(t *testing.T) {
	raw, err := json.Marshal(plan.Plan{Workloads: []plan.Workload{{Name: "W", Group: "G", Load: &load.Plan{OwnData: true, Extents: []extent.Extent{{Device: "/dev/sdb", Length: 1 << 30, Writes: true}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	run := &document.Run{Plan: raw, Summary: result.Summary{Ended: result.EndedCompleted}}
	run.Summary.Loads = []result.LoadSummary{{Workload: "W", Group: "G", VMs: 1, ToNanos: second, Total: interval.Traffic{Operations: 5}}}
	facts := strings.Join(document.Build(run).Measured[0].Facts, "; ")
	if !strings.Contains(facts, "writes the data that it reads itself") || strings.Contains(facts, "prefill") {
		t.Errorf("facts: %s", facts)
	}
}
