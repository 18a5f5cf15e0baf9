package domain

import (
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/target"
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
	t.Run("definition", func(t *testing.T) { defined(t, c) })
}

// defined wants libvirt to accept what other tests do not use: a bridge, and a CD drive after the last disk.
func defined(t *testing.T, c *Client) {
	id := target.VMID(testTag().Mark(), "a")
	m, err := NewMetadata(testTag(), Record{VM: target.VM{ID: id, Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	d := Domain{
		Type: TCG, Name: Name(id, "a"), UUID: id, Metadata: m, RAMBytes: 1 << 30, VCPUs: 2, Guest: &Guest{MAC: MAC(id), Bridge: "br0"},
		Disks: []Disk{
			{Index: 0, Path: "/pool/a&b", Format: "qcow2", Cache: "none", Boot: true},
			{Index: DisksMax, Path: "/pool/seed", Format: "raw", Cache: "writeback", CDROM: true, ReadOnly: true},
		},
	}
	if err := c.Define(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	info, err := c.Get(t.Context(), id)
	if err != nil || info.Mark() != testTag().Mark() || len(info.Disks) != 2 || info.Disks[0].Source.File != "/pool/a&b" || info.Disks[1].Target.Dev != target.DiskName(DisksMax) {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := c.Undefine(t.Context(), id); err != nil {
		t.Error(err)
	}
}
