package planner_test

import (
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
