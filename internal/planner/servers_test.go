package planner_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// TestServersOfGenerators: a workload names a group for its servers if its generator needs that, and may do so if it can use it.
func TestServersOfGenerators(t *testing.T) {
	const none, needed = `generator "native" has no servers on other VMs`, `generator "native" needs a server_group`
	for _, c := range []struct {
		servers        load.Servers
		alone, between string // the error without and with a server_group; "": there is none
	}{
		{load.ServersNo, "", none}, {load.ServersMay, "", "its servers would be on the VMs of its clients"}, {load.ServersMust, needed, ""},
	} {
		for named, want := range map[string]string{"": c.alone, "      server_group: Workers\n": c.between} {
			l := newLab(t, 2)
			inventory, err := l.fake.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(plannertest.Head, "      config_file: load.fio\n", "      config_file: load.fio\n"+named) + plannertest.Deployed +
				"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
			catalog := plannertest.Catalog()
			catalog.Generators[0].Servers = c.servers
			made, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), catalog, planner.Options{})
			switch {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("kind %d, group %q: error %v, want %q", c.servers, named, err, want)
			case want != "":
			case err != nil:
				t.Errorf("kind %d, group %q: %v", c.servers, named, err)
			case named != "" && made.Workloads[0].Servers == nil:
				t.Errorf("kind %d: the plan has no servers", c.servers)
			}
		}
	}
}

// TestServersHoldData: what a load between groups reads and writes is on the disks of its servers, where its prefill runs.
func TestServersHoldData(t *testing.T) {
	compile := func(more string, options planner.Options) (*planner.Plan, error) {
		l := newLab(t, 2)
		inventory, err := l.fake.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(plannertest.Head, "workloads:\n", "  - Servers:\n      template: ubuntu1604\n      data_disks: {count: 3, size: 1}\n      count_per_cluster: 1\nworkloads:\n", 1)
		text = strings.Replace(text, "      config_file: load.fio\n", "      config_file: load.fio\n      server_group: Servers\n"+more, 1) + plannertest.Deployed +
			"  - vm_group.CloneFromTemplate: {vm_group_name: Servers}\n  - vm_group.PowerOn: {vm_group_name: Servers}\n" +
			"  - workload.PrefillRun: {workload_name: Load}\nrun:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
		catalog := plannertest.Catalog()
		catalog.Generators[0].Servers = load.ServersMay
		return planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), catalog, options)
	}
	made, err := compile("", planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &made.Workloads[0]
	if w.DataGroup() != "Servers" || len(w.Load.Extents) != 3 || len(w.Prefill.Extents) != 3 {
		t.Errorf("data on %s, %d and %d disks", w.DataGroup(), len(w.Load.Extents), len(w.Prefill.Extents))
	}
	if n := w.Servers.Clients(2, 1); n != 2 {
		t.Errorf("%d clients of the server, want 2", n)
	}
	for _, g := range made.Groups {
		if touched := map[string]int64{"Servers": 3 * 64 << 20}[g.Name]; g.TouchedBytes != touched {
			t.Errorf("the load touches %d bytes of each VM of %s, want %d", g.TouchedBytes, g.Name, touched)
		}
	}
	if want := int64(3 * 64 << 20); made.Footprint.WrittenKnownBytes != want {
		t.Errorf("the prefill writes %d bytes, want %d on the one server", made.Footprint.WrittenKnownBytes, want)
	}
	// A rehearsal shrinks the data with the disks that it is on, which are those of the servers.
	const bound = 48 << 20
	made, err = compile("", planner.Options{Rehearse: 5 * time.Second, RehearseBytes: bound})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range made.Groups {
		if g.TouchedBytes > bound || g.Name == "Servers" && g.TouchedBytes == 0 {
			t.Errorf("a rehearsal touches %d bytes of each VM of %s, of at most %d", g.TouchedBytes, g.Name, bound)
		}
		for _, e := range made.Workloads[0].Load.Extents {
			if g.Name == "Servers" && e.Offset+e.Length > g.Disks[0].SizeBytes {
				t.Errorf("%d bytes at %d of a disk of %d", e.Length, e.Offset, g.Disks[0].SizeBytes)
			}
		}
	}
	if _, err := compile("      server_pairing: mesh\n", planner.Options{}); err == nil || !strings.Contains(err.Error(), "has one server") {
		t.Errorf("each client with every server: %v", err)
	}
}

// inStep is a generator whose VMs wait for each other.
type inStep struct{ plannertest.Plain }

func (g inStep) Plan(w load.Workload) (load.Plan, error) {
	p, err := g.Plain.Plan(w)
	p.InStep = w.Remote.VMs > 1 && !w.Prefill
	return p, err
}

// TestStartsInStep: VMs that wait for each other cannot start in turn, which the plan refuses at the argument. Prefills may.
func TestStartsInStep(t *testing.T) {
	for _, c := range []struct {
		nodes      int
		args, want string
	}{
		{2, "runtime_secs: 10, stagger_secs: 5", `stagger_secs does not go with "Load", whose 2 VMs go in step`},
		{1, "runtime_secs: 10, stagger_secs: 5", ""}, {2, "runtime_secs: 10", ""},
	} {
		l := newLab(t, c.nodes)
		inventory, err := l.fake.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := plannertest.Head + plannertest.Deployed + "  - workload.PrefillRun: {workload_name: Load, max_concurrent: 1}\n" +
			"run:\n  - workload.Start: {workload_name: Load, " + c.args + "}\n"
		catalog := plannertest.Catalog()
		catalog.Generators[0].Generator = inStep{}
		_, err = planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), catalog, planner.Options{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d nodes, %s: %v, want %q", c.nodes, c.args, err, c.want)
		}
		var refusal *planner.Refusal
		if c.want != "" && (!errors.As(err, &refusal) || refusal.List[0].Pos.Line != 25 || refusal.List[0].Pos.Column != 75 || !strings.Contains(refusal.List[0].Hint, "remove stagger_secs")) {
			t.Errorf("place or hint of %+v", refusal)
		}
	}
}
