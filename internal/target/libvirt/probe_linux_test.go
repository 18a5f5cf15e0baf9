package libvirt

import (
	"strings"
	"testing"
)

// The probe says what is so: under TCG a domain boots, and what a host offers and cannot do is no accelerator.
func TestProbe(t *testing.T) {
	r := newRig(t)
	l := r.open(t, t.TempDir(), nil, nil).(powered).Target
	n := l.nodes[0]
	if took, err := n.boot(t.Context(), accelTCG, ""); err != nil || took < probeWait {
		t.Errorf("under TCG: %v, %v", took, err)
	}
	a, err := n.probeKVM(t.Context(), "host-passthrough")
	if err != nil || a.kind != accelKVM && a.kind != accelTCG || a.reason == "" {
		t.Errorf("got %+v, %v", a, err)
	}
	t.Logf("this machine: %s", a.describe())
	if a.kind == accelTCG {
		// What libvirt refuses to start is found out too.
		if _, err := n.boot(t.Context(), "xen", ""); err == nil {
			t.Error("a domain of another hypervisor booted")
		}
	}
	if left := r.virsh(t, 0, "list", "--all", "--name"); strings.TrimSpace(left) != "" {
		t.Errorf("the probe left %q", left)
	}
}
