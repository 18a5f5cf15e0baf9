package libvirt

import (
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// HostUp calls the host each time, also after it has answered.
func TestHostUpAsksTheHost(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, 2, false)
	l := s.open(t.TempDir())
	if _, err := l.Inventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := l.(target.HostChecker)
	if err := up.HostUp(t.Context(), "host-1"); err != nil {
		t.Error(err)
	}
	s.set(func() { s.hosts[0].down = true })
	if err := up.HostUp(t.Context(), "host-1"); err == nil {
		t.Error("a host that does not answer is up")
	}
	if err := up.HostUp(t.Context(), "host-2"); err != nil {
		t.Error(err)
	}
}

// Hosts that were installed from one image have pools with one UUID and different disks: VMs on each go with theirs, and what
// is left on any of them is found.
func TestPoolsOfClonedHosts(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, 3, false)
	tag := testTag()
	var vms []target.VM
	for _, h := range s.hosts {
		vms = append(vms, h.add(t, tag, "VM of "+h.name, true))
	}
	orphan := storage.VolumeName(tag.Mark(), target.VMID(tag.Mark(), "orphan"), "sdb")
	s.hosts[1].volumes[orphan] = true
	s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) { return nil, nil, c.Name() == "destroy" }
	l := s.open(t.TempDir())
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != len(vms)+1 {
		t.Fatalf("owned are %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Fatal(err)
	}
	for _, h := range s.hosts {
		if len(h.domains) > 0 || len(h.volumes) != 1 || !h.volumes["blank.qcow2"] {
			t.Errorf("%s still has %d domains and %v", h.name, len(h.domains), h.volumes)
		}
	}
	inventory, err := l.Inventory(t.Context())
	if err != nil || inventory.TotalBytes != 3000 || !slices.Equal(inventory.Templates, []string{blankTemplate}) {
		t.Errorf("%+v, %v", inventory, err)
	}
}
