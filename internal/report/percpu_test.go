package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/target"
)

// databaseRun is a run whose OLTP completed so many transactions in a minute, on a database with those CPUs: an endpoint, or a VM of a group.
func databaseRun(t *testing.T, transactions uint64, endpoint *load.EndpointCPUs, g plan.Group) *document.Run {
	t.Helper()
	run := smallRun()
	p := plan.Plan{Groups: []plan.Group{g}, Workloads: []plan.Workload{{Name: "OLTP", Group: "OLTP", Load: &load.Plan{EndpointCPUs: endpoint, BesideServer: endpoint == nil}}}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	run.Plan = text
	for i := range run.Summary.Loads {
		l := &run.Summary.Loads[i]
		if l.Prefill {
			continue
		}
		l.VMs, l.FromNanos, l.ToNanos, l.Total.Operations = 1, 0, 60*second, transactions
	}
	return run
}

// TestPerCPU has published numbers: a VM of 16 vCPUs with 900,000 transactions per minute, and two sizes of a managed database, whose vCPUs are
// threads: 16 with 500,000 and 32 with 800,000.
func TestPerCPU(t *testing.T) {
	vm := plan.Group{Name: "OLTP", VCPUs: 16, Count: 1}
	c, err := compare.Runs([]*document.Run{databaseRun(t, 900_000, nil, vm), databaseRun(t, 500_000, &load.EndpointCPUs{VCPUs: 16, Threads: 2}, vm),
		databaseRun(t, 800_000, &load.EndpointCPUs{VCPUs: 32, Threads: 2}, vm)}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var of *compare.Load
	for i := range c.Loads {
		if len(c.Loads[i].PerCPU) > 0 {
			of = &c.Loads[i]
		}
	}
	if of == nil {
		t.Fatalf("no load has figures per CPU: %+v", c.Loads)
	}
	want := map[string][]float64{"vCPUs": {1, 1, 2}, "cores": {1, 0.5, 1}, "operations per second and vCPU": {1, 0.556, 0.444}, "operations per second and core": {1, 1.111, 0.889}}
	for _, f := range of.PerCPU {
		for i, ratio := range want[f.Name] {
			if math.Abs(float64(f.Ratios[i])-ratio) > 0.0005 && i > 0 {
				t.Errorf("%s of run %d: ratio %v, want %v", f.Name, i, f.Ratios[i], ratio)
			}
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	var text, page bytes.Buffer
	if err := report.ComparisonTerminal(&text, c, 300, false); err != nil {
		t.Fatal(err)
	}
	if err := report.ComparisonHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"text": text.String(), "page": page.String()} {
		for _, w := range []string{"Per CPU of the database", "operations per second and core", "1.11", "0.444", "counts as one core"} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
}

// TestPerCPULeftOut: where all runs have the same CPUs, or one alone is known, ratios would say no more.
func TestPerCPULeftOut(t *testing.T) {
	vm := plan.Group{Name: "OLTP", VCPUs: 16, Count: 1}
	threads := plan.Group{Name: "OLTP", VCPUs: 16, Count: 1, Topology: target.Topology{Sockets: 1, Cores: 8, Threads: 2}}
	hosts := databaseRun(t, 1000, nil, threads)
	hosts.Manifest.Target.Provider = "ssh"
	for name, c := range map[string]struct {
		a, b *document.Run
		want int
	}{
		"same":     {databaseRun(t, 1000, nil, vm), databaseRun(t, 2000, nil, vm), 0},
		"one":      {smallRun(), databaseRun(t, 2000, nil, vm), 0},
		"hosts":    {hosts, databaseRun(t, 2000, nil, vm), 0},
		"topology": {databaseRun(t, 1000, nil, threads), databaseRun(t, 2000, nil, vm), 4},
	} {
		cmp, err := compare.Runs([]*document.Run{c.a, c.b}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		figures := 0
		for _, l := range cmp.Loads {
			figures += len(l.PerCPU)
		}
		if figures != c.want {
			t.Errorf("%s: %d figures per CPU, want %d", name, figures, c.want)
		}
	}
}
