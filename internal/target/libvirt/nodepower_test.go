package libvirt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// powerOf opens simulated hosts with BMCs.
func powerOf(t *testing.T, hosts int) (*simulated, powered) {
	t.Helper()
	if testing.Short() {
		t.Skip("a power cut is watched for seconds")
	}
	s := newSimulated(t, hosts, true)
	// This machine may have no identity, and then it could be one of the hosts.
	s.config.Allow.Overrides = []string{target.OverrideController}
	return s, s.open(t.TempDir()).(powered)
}

// A node still has to answer before another one is cut if its own cut was refused or had no effect.
func TestRefusedCutExcusesNoNode(t *testing.T) {
	t.Parallel()
	s, p := powerOf(t, 3)
	p.LimitNodesOff(3)
	s.set(func() {
		s.hosts[0].add(t, target.Tag{Controller: "other", Run: "other", Nonce: strings.Repeat("cd", 16)}, "payroll", true)
	})
	if err := p.PowerOffNode(t.Context(), "host-1"); diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), "payroll") {
		t.Fatalf("a node with a foreign VM: %v", err)
	}
	s.set(func() { s.hosts[0].down = true })
	err := p.PowerOffNode(t.Context(), "host-2")
	if diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), "host-1") {
		t.Errorf("host-1 has power and does not answer: %v", err)
	}
	for _, h := range s.hosts {
		if orders := h.bmc.Resets(); len(orders) > 0 {
			t.Errorf("%s was ordered to %q", h.name, orders)
		}
	}
}

// Nodes that this run has cut are not missed, also when they are cut at the same time.
func TestSecondCut(t *testing.T) {
	t.Parallel()
	s, p := powerOf(t, 4)
	p.LimitNodesOff(3)
	if err := p.PowerOffNode(t.Context(), "host-1"); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, host := range []string{"host-2", "host-3"} {
		go func() { errs <- p.PowerOffNode(t.Context(), host) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(s.hosts[0].bmc.Resets(), s.hosts[1].bmc.Resets(), s.hosts[2].bmc.Resets(), s.hosts[3].bmc.Resets()); got != "[ForceOff] [ForceOff] [ForceOff] []" {
		t.Error(got)
	}
}

// A node that is already off counts, regardless of who switched it off, and must stay off.
func TestNodeThatIsOffCounts(t *testing.T) {
	t.Parallel()
	s, p := powerOf(t, 2)
	p.LimitNodesOff(1)
	s.hosts[0].bmc.SetOff(true)
	if err := p.PowerOffNode(t.Context(), "host-1"); err != nil {
		t.Fatal(err)
	}
	s.hosts[0].bmc.SetOff(false) // as by its button
	if err := p.PowerOffNode(t.Context(), "host-2"); diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), "at most 1") {
		t.Errorf("a second node was cut: %v", err)
	}
}
