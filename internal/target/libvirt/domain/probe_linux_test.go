package domain

import (
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

func TestMain(m *testing.M) {
	labtest.Main()
	m.Run()
}

// The result of the probe is true: under TCG a domain boots, and an accelerator that a host offers without supporting it is refused.
func TestProbe(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	l := labtest.New(t, lab.Options{})
	host, err := virsh.NewHost("n", l.Hosts[0].URI(), virsh.Run)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	c := NewClient(host)
	if took, err := c.boot(t.Context(), TCG, ""); err != nil || took < probeWait {
		t.Errorf("under TCG: %v, %v", took, err)
	}
	a, err := c.Probe(t.Context(), "host-passthrough")
	if err != nil || a.Kind != KVM && a.Kind != TCG || a.Reason == "" {
		t.Errorf("got %+v, %v", a, err)
	}
	t.Logf("this machine: %s", a)
	if a.Kind == TCG {
		// What libvirt refuses to start is found out too.
		if _, err := c.boot(t.Context(), "xen", ""); err == nil {
			t.Error("a domain of another hypervisor booted")
		}
	}
	if left, err := c.All(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("the probe left %+v, %v", left, err)
	}
}
