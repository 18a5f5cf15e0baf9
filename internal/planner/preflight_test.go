package planner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// hungry plans like Plain, with buffers.
type hungry struct {
	plannertest.Plain
	bytes int64
}

func (h hungry) Plan(w load.Workload) (load.Plan, error) {
	p, err := h.Plain.Plan(w)
	p.MemoryBytes = h.bytes
	return p, err
}

// planOnMachine plans on a target of one machine with 2 CPUs and 24 GiB, which has its VMs as processes.
func planOnMachine(t *testing.T, group string, buffers int64, options planner.Options) *planner.Plan {
	t.Helper()
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inventory.Simulated, inventory.Overcommits = false, true
	for i := range inventory.Nodes {
		inventory.Nodes[i].CPUs, inventory.Nodes[i].RAMBytes = 2, 24<<30
	}
	text := strings.Replace(plannertest.Head, "      count_per_node: 1\n", group, 1) + plannertest.Deployed +
		"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
	catalog := plannertest.Catalog()
	catalog.Generators = load.Kinds{{Name: "native", Generator: hungry{bytes: buffers}, JobFiles: true}}
	plan, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), catalog, options)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestProcessesFitTheMachine: VMs that are processes take memory and open files of this machine, whatever their ram_mb
// and vcpus are.
func TestProcessesFitTheMachine(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name, group string
		buffers     int64
		refused     string // "": it fits
	}{
		{"as many as fit", "      count_per_cluster: 1024\n", 0, ""},
		{"one too many", "      count_per_cluster: 1025\n", 0, "1025 VMs, each a process, and at most 1024 run on its 2 CPUs"},
		{"far too many", "      count_per_cluster: 5000\n", 0, "5000 VMs"},
		{"buffers fit", "      count_per_cluster: 10\n", 2 * gib, ""},
		{"buffers do not fit", "      count_per_cluster: 11\n", 2 * gib, "take 22.2 GiB of memory"},
		{"large VMs need no memory", "      count_per_cluster: 1\n      vcpus: 128\n      ram_mb: 262144\n", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := planner.Preflight(planOnMachine(t, c.group, c.buffers, planner.Options{}))
			var told *diag.Error
			switch {
			case c.refused == "" && err == nil:
			case !errors.As(err, &told) || c.refused == "" || !strings.Contains(told.Message, c.refused):
				t.Errorf("preflight: %v, want %q", err, c.refused)
			case told.Exit != diag.ExitUnavailable || !strings.Contains(told.Hint, "--rehearse"):
				t.Errorf("exit code %d, hint %q", told.Exit, told.Hint)
			}
		})
	}
	if err := planner.Preflight(planOnMachine(t, "      count_per_cluster: 5000\n", 0, planner.Options{Rehearse: 10e9})); err != nil {
		t.Errorf("rehearsal: %v", err)
	}
}

// TestOversizedVMsAreNoted: VMs with more than eight times the resources of the machine are reported.
func TestOversizedVMsAreNoted(t *testing.T) {
	for vcpus, want := range map[int]bool{16: false, 17: true} {
		group := fmt.Sprintf("      count_per_cluster: 1\n      vcpus: %d\n", vcpus)
		notes := planOnMachine(t, group, 0, planner.Options{}).Notes
		if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "17 vCPUs") }) != want {
			t.Errorf("%d vCPUs: notes %q", vcpus, notes)
		}
	}
	for mib, want := range map[int]bool{8 * 24 << 10: false, 8*24<<10 + 1024: true} {
		group := fmt.Sprintf("      count_per_cluster: 1\n      ram_mb: %d\n", mib)
		notes := planOnMachine(t, group, 0, planner.Options{}).Notes
		if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "193 GiB of memory") }) != want {
			t.Errorf("%d MiB: notes %q", mib, notes)
		}
	}
}

// planWith plans four VMs with two disks each, of which 1 GiB is touched in all, on a target of 4 nodes that change makes what it is.
func planWith(t *testing.T, options planner.Options, change func(*target.Inventory)) *planner.Plan {
	t.Helper()
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inventory.TotalBytes, inventory.FreeBytes = 100<<30, 100<<30
	change(&inventory)
	text := plannertest.Head + plannertest.Deployed + "run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
	plan, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), plannertest.Catalog(), options)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestAddressesAndCopiesFit: a network with fewer addresses than VMs, and copies that the storage keeps, are counted.
func TestAddressesAndCopiesFit(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*target.Inventory)
		refused string // "": it fits
	}{
		{"nothing is known", func(*target.Inventory) {}, ""},
		{"as many as there are", func(i *target.Inventory) { i.AddressesMax = 4 }, ""},
		{"one too few", func(i *target.Inventory) { i.AddressesMax = 3 }, `addresses lab: 4 VMs need an address each and the target has 3`},
		{"one on each node", func(i *target.Inventory) {
			for n := range i.Nodes {
				i.Nodes[n].AddressesMax = 1
			}
		}, ""},
		{"none is known of the others", func(i *target.Inventory) { i.Nodes[2].AddressesMax = 1 }, ""},
		{"two on a node with one", func(i *target.Inventory) {
			i.Nodes[3].ID, i.Nodes[3].Name = i.Nodes[0].ID, "again" // two of the VMs are there
			i.Nodes[0].AddressesMax = 1
		}, `addresses node-1: 2 VMs on node "node-1" need an address each and the network there has 1`},
		{"copies fit", func(i *target.Inventory) { i.FreeBytes, i.Replication = 33<<30, 3 }, ""},
		{"copies do not fit", func(i *target.Inventory) { i.FreeBytes, i.Replication = 31<<30, 3 },
			"space lab: the run takes 1.5 GiB (3 copies of 512 MiB) and 31 GiB of 100 GiB are free"},
		{"one copy fits", func(i *target.Inventory) { i.FreeBytes, i.Replication = 31<<30, 1 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := planWith(t, planner.Options{}, c.change)
			told := ""
			for _, u := range plan.Unfit {
				told += u.Resource + " " + u.Subject + ": " + u.Message
			}
			if !strings.HasPrefix(told, c.refused) || c.refused == "" && told != "" {
				t.Errorf("told %q, want %q", told, c.refused)
			}
			if err := planner.Preflight(plan); (err != nil) != (c.refused != "") {
				t.Errorf("preflight: %v", err)
			}
		})
	}
}

// TestRehearsalCountsCopies: a rehearsal takes a quarter of the free space, copies included.
func TestRehearsalCountsCopies(t *testing.T) {
	plan := planWith(t, planner.Options{Rehearse: 10e9}, func(i *target.Inventory) { i.FreeBytes, i.Replication = 1<<30, 2 })
	if f := plan.Footprint; f.BoundBytes != 128<<20 || f.StoredBytes() > 256<<20 || f.StoredBytes() != 2*f.Bytes() {
		t.Errorf("bound %d, taken %d, with copies %d", f.BoundBytes, f.Bytes(), f.StoredBytes())
	}
}

// TestProgramsOfGuests: a template that has the agent only is refused for loads that run programs, with the command that makes another one; a plan
// for guests names it anyway.
func TestProgramsOfGuests(t *testing.T) {
	text := strings.Replace(plannertest.Head, "config_file: load.fio", "generator: programs", 1) + plannertest.Deployed +
		"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
	for _, agentOnly := range []bool{true, false} {
		l := newLab(t, 1)
		inventory, err := l.fake.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inventory.Hypervisor = "kvm"
		inventory.Boots = map[string]target.Boot{"ubuntu1604": {AgentOnly: agentOnly}}
		p, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), plannertest.Catalog(), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const command = "bragg image build --with postgresql,xfsprogs"
		if agentOnly {
			if len(p.Unfit) != 1 || p.Unfit[0].Message != `workload "Load" needs pgbench 13 or newer, psql, mkfs.xfs, and template "ubuntu1604" has no programs but the agent` ||
				!strings.HasSuffix(p.Unfit[0].Hint, command) {
				t.Errorf("unfit %+v", p.Unfit)
			}
		} else if len(p.Unfit) > 0 {
			t.Errorf("unfit %+v", p.Unfit)
		}
		var b strings.Builder
		if err := p.WriteText(&b, plan.TextOptions{}); err != nil || strings.Count(b.String(), "a Debian guest with them: "+command+"\n") != 1 {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}
