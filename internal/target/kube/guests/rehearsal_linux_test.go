package guests

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// rehearsals are the scenarios that every platform carries out. One is short enough for every test; four_corners needs twenty seconds however
// short it is, and each test carries it out on pods of a real cluster.
var rehearsals = []programtest.Rehearsal{
	{Scenario: "snapshot_impact", Length: "1s", Set: []string{"snapshots=3"}},
	{Scenario: "four_corners", Length: "5s", Set: []string{"vms_per_node=1"}, Soak: true},
	{Scenario: "node_failure", Length: "30s", Set: []string{"scan_vms=1"}, Soak: true},
	{Scenario: "clone_impact", Length: "20s", Set: []string{"desktops_per_node=2"}, Soak: true},
	{Scenario: "noisy_neighbor", Length: "20s", Soak: true},
}

// Shipped scenarios on VMs of KubeVirt, which is simulated, with real agents.
func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	r := newRig(t)
	for _, c := range rehearsals {
		t.Run(c.Scenario, func(t *testing.T) {
			r.check(t, r.Rehearse(t, c))
			if left := kubetest.Left(r.Server); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// check wants operations in a sealed bundle, which says what it ran on, and no secret in any file.
func (r *rig) check(t *testing.T, runs string) {
	t.Helper()
	resulttest.NoSecret(t, runs, r.secrets...)
	b := resulttest.Only(t, runs)
	facts := map[string]string{}
	for _, f := range b.Manifest().Target.Facts {
		facts[f[0]] = f[1]
	}
	if !strings.Contains(facts["KubeVirt"], "simulated") {
		t.Errorf("the bundle has the facts %q", facts)
	}
	t.Logf("%d operations", resulttest.Operations(t, b))
}
