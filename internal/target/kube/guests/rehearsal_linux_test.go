package guests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
)

// soakVariable asks for every scenario; "make soak" sets it.
const soakVariable = "BRAGG_SOAK_REHEARSALS"

// rehearsals are the scenarios that every platform carries out. One is short enough for every test; four_corners needs twenty seconds however
// short it is, and each test carries it out on pods of a real cluster.
var rehearsals = []struct {
	scenario, length string
	set              []string
	soak             bool
}{
	{scenario: "snapshot_impact", length: "1s", set: []string{"snapshots=3"}},
	{scenario: "four_corners", length: "5s", set: []string{"vms_per_node=1"}, soak: true},
	{scenario: "node_failure", length: "30s", set: []string{"scan_vms=1"}, soak: true},
	{scenario: "clone_impact", length: "20s", set: []string{"desktops_per_node=2"}, soak: true},
	{scenario: "noisy_neighbor", length: "20s", soak: true},
}

// Shipped scenarios on VMs of KubeVirt, which is simulated, with real agents.
func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	r := newRig(t)
	for _, c := range rehearsals {
		if c.soak && os.Getenv(soakVariable) == "" {
			continue
		}
		t.Run(c.scenario, func(t *testing.T) {
			began := time.Now()
			runs := filepath.Join(t.TempDir(), "runs")
			args := []string{"run", c.scenario, "--target", r.file, "--runs", runs, "--rehearse", c.length, "--rehearse-size", "16MiB", "--max-full", "99"}
			for _, s := range c.set {
				args = append(args, "--set", s)
			}
			code, out := r.command(t, args...)
			t.Logf("exit code %d after %s", code, time.Since(began).Round(time.Second))
			if code != 0 {
				t.Fatalf("%s", out)
			}
			r.check(t, runs)
			if _, said := r.command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
				t.Errorf("bragg clean found something: %s", said)
			}
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
