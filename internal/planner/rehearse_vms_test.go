package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// TestRehearsalShrinksVMs: VMs that are larger than their nodes are refused in a full run. In a rehearsal they get the
// resources of the nodes, and plan and record report it. VMs that fit keep their requested size.
func TestRehearsalShrinksVMs(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name            string
		cpus            int
		ram             int64
		vcpus, mib      int
		vcpusNow        int
		ramNow          int64
		refused, notice string // "": not
	}{
		{name: "fits", cpus: 4, ram: 8 * gib, vcpus: 4, mib: 4096, vcpusNow: 4, ramNow: 4 * gib},
		{name: "nothing known", vcpus: 64, mib: 65536, vcpusNow: 64, ramNow: 64 * gib},
		{name: "few CPUs", cpus: 2, ram: 8 * gib, vcpus: 4, mib: 4096, vcpusNow: 2, ramNow: 4 * gib,
			refused: "wants 4 vCPUs", notice: "2 vCPUs instead of 4"},
		{name: "little memory", cpus: 4, ram: 2 * gib, vcpus: 4, mib: 4096, vcpusNow: 4, ramNow: 1843 << 20,
			refused: "need 4 GiB of memory", notice: "of memory instead of 4 GiB"},
		{name: "never below what boots", cpus: 1, ram: gib / 2, vcpus: 1, mib: 1024, vcpusNow: 1, ramNow: 512 << 20,
			refused: "need 1 GiB of memory", notice: "512 MiB of memory instead of 1 GiB"},
		{name: "less than that is kept", cpus: 1, ram: gib / 2, vcpus: 1, mib: 256, vcpusNow: 1, ramNow: 256 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := planOnNodes(t, c.cpus, c.ram, c.vcpus, c.mib, 0)
			var told *diag.Error
			if err := planner.Preflight(full); c.refused == "" && err != nil ||
				c.refused != "" && (!errors.As(err, &told) || !strings.Contains(told.Message, c.refused)) {
				t.Errorf("full run: %v, want %q", err, c.refused)
			}
			if g := full.Groups[0]; g.VCPUs != c.vcpus || g.RAMBytes != int64(c.mib)<<20 {
				t.Errorf("a full run has VMs with %d vCPUs and %d bytes", g.VCPUs, g.RAMBytes)
			}
			plan := planOnNodes(t, c.cpus, c.ram, c.vcpus, c.mib, 10*time.Second)
			if err := planner.Preflight(plan); err != nil {
				t.Errorf("rehearsal: %v", err)
			}
			g, r := plan.Groups[0], plan.Rehearsal
			if g.VCPUs != c.vcpusNow || g.RAMBytes != c.ramNow {
				t.Errorf("VMs have %d vCPUs and %d bytes, want %d and %d", g.VCPUs, g.RAMBytes, c.vcpusNow, c.ramNow)
			}
			if _, ok := r.VCPUs[g.Name]; ok != (c.vcpus != c.vcpusNow) {
				t.Errorf("record of vCPUs: %v", r.VCPUs)
			}
			if _, ok := r.RAMBytes[g.Name]; ok != (c.ramNow != int64(c.mib)<<20) {
				t.Errorf("record of memory: %v", r.RAMBytes)
			}
			if text := planText(t, plan); !strings.Contains(text, c.notice) || c.notice == "" && strings.Contains(text, " instead of 4 GiB") {
				t.Errorf("plan without %q:\n%s", c.notice, text)
			}
		})
	}
}

// planOnNodes plans on two nodes that give VMs their requested resources, with one VM on each.
func planOnNodes(t *testing.T, cpus int, ram int64, vcpus, mib int, rehearse time.Duration) *planner.Plan {
	t.Helper()
	l := newLab(t, 2)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inventory.Overcommits = false
	for i := range inventory.Nodes {
		inventory.Nodes[i].CPUs, inventory.Nodes[i].RAMBytes = cpus, ram
	}
	text := strings.Replace(plannertest.Head, "      count_per_node: 1\n",
		fmt.Sprintf("      count_per_node: 1\n      vcpus: %d\n      ram_mb: %d\n", vcpus, mib), 1) + plannertest.Deployed +
		"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n"
	plan, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), plannertest.Catalog(), planner.Options{Rehearse: rehearse})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func planText(t *testing.T, p *planner.Plan) string {
	t.Helper()
	var b strings.Builder
	if err := p.WriteText(&b, plan.TextOptions{Commands: true}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRehearsalTellsNodes: a rehearsal uses four nodes. That is one of its factors, and the VM count of the full scenario
// is computed on all nodes, growth included.
func TestRehearsalTellsNodes(t *testing.T) {
	text := strings.Replace(plannertest.Head, "count_per_node: 1", "count_per_node: 2", 1) + plannertest.Deployed + `run:
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 25}
  - workload.Start: {workload_name: Load, runtime_secs: 10}
`
	for nodes, want := range map[int]struct {
		nodes      [2]int
		count      [2]int
		said, head string
	}{
		8: {[2]int{8, 4}, [2]int{200, 16}, "16 VMs instead of 200", "; 4 nodes instead of 8\n"},
		4: {[2]int{4, 4}, [2]int{100, 16}, "16 VMs instead of 100", "× 1\n"},
	} {
		l := newLab(t, nodes)
		plan := l.plan(plannertest.Load(t, text), planner.Options{Rehearse: time.Minute})
		if r := plan.Rehearsal; r.Nodes != want.nodes || r.Counts["Workers"] != want.count {
			t.Errorf("%d nodes: record of %v nodes and %v VMs, want %v and %v", nodes, r.Nodes, r.Counts, want.nodes, want.count)
		}
		if g := plan.Groups[0]; g.ScenarioCount != 2*nodes || g.Count != 1 || len(plan.Target.Nodes) != 4 {
			t.Errorf("%d nodes: %d VMs become %d on %d nodes", nodes, g.ScenarioCount, g.Count, len(plan.Target.Nodes))
		}
		if text := planText(t, plan); !strings.Contains(text, want.said) || !strings.Contains(text, want.head) {
			t.Errorf("%d nodes: plan without %q or %q:\n%s", nodes, want.said, want.head, text)
		}
		if full := l.plan(plannertest.Load(t, text), planner.Options{}); full.Groups[0].CountFinal != want.count[0] || len(full.Target.Nodes) != nodes {
			t.Errorf("%d nodes: a full run has %d VMs", nodes, full.Groups[0].CountFinal)
		}
	}
}
