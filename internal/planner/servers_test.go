package planner_test

import (
	"errors"
	"strings"
	"testing"

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
		{load.ServersNo, "", none}, {load.ServersMay, "", ""}, {load.ServersMust, needed, ""},
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
