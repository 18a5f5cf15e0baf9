package rehearsal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// rig is a vCenter of two hosts with BMCs, and the programs that users have.
type rig struct {
	*vcsim.Server
	*programtest.User
}

func newRig(t *testing.T, o vcsim.Options) *rig {
	t.Helper()
	testreq.Root(t)
	u := programtest.NewUser(t)
	o.Hosts, o.Program = 2, filepath.Join(filepath.Dir(u.Bragg), "bragg-agent")
	s, err := vcsim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.PowerOff(vcsim.Foreign); err != nil { // a user's VM that runs forbids to cut the power of its host
		t.Fatal(err)
	}
	if _, err := s.BMCs(vcsim.Password); err != nil {
		t.Fatal(err)
	}
	text, err := s.TargetFile(filepath.Dir(u.File), "allow: {node_power: true, maintenance: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &rig{s, u}
}

// rehearsals are the scenarios that every platform carries out. One of them is short enough for every test.
var rehearsals = []programtest.Rehearsal{
	{Scenario: "four_corners", Length: "5s", Set: []string{"vms_per_node=1"}},
	{Scenario: "node_failure", Length: "30s", Set: []string{"scan_vms=1"}, Soak: true},
	{Scenario: "snapshot_impact", Length: "20s", Soak: true},
	{Scenario: "clone_impact", Length: "20s", Set: []string{"desktops_per_node=2"}, Soak: true},
	{Scenario: "noisy_neighbor", Length: "20s", Soak: true},
}

func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	r := newRig(t, vcsim.Options{})
	for _, c := range rehearsals {
		t.Run(c.Scenario, func(t *testing.T) {
			r.check(t, r.Rehearse(t, c))
			for name := range r.VMs() {
				if name != vcsim.Foreign && name != vcsim.Template {
					t.Errorf("vm %q is left", name)
				}
			}
		})
	}
}

// check wants operations in a sealed bundle, values of the vCenter's counters, and no password anywhere.
func (r *rig) check(t *testing.T, runs string) {
	t.Helper()
	resulttest.NoSecret(t, runs, vcsim.Password)
	bundle := resulttest.Only(t, runs)
	operations := resulttest.Operations(t, bundle)
	sampled := map[string]bool{}
	for one, err := range bundle.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		sampled[one.Name] = true
	}
	if len(sampled) == 0 {
		t.Error("no samples")
	}
	t.Logf("%d operations; %d metrics", operations, len(sampled))
}
