package targettest

import (
	"bytes"
	"slices"

	"github.com/braggdev/bragg/internal/target"
)

func revert(s *suite) {
	if !s.needs(target.CapRevert) {
		return
	}
	p, r := require[target.Snapshotter](s), require[target.Reverter](s)
	vms := s.create("OLTP", 2)
	write := func(seed byte) {
		if s.h.WriteDisk == nil {
			return
		}
		for _, vm := range vms {
			s.h.WriteDisk(s.T, vm, vm.Disks[0], 0, pattern(seed))
		}
	}
	want := func(seed byte) {
		s.Helper()
		if s.h.ReadDisk == nil {
			return
		}
		for _, vm := range vms {
			if got := s.h.ReadDisk(s.T, vm, vm.Disks[0], 0, 8192); !bytes.Equal(got, pattern(seed)) {
				s.Errorf("vm %q does not hold the data of the snapshot", vm.Name)
			}
		}
	}
	for i, name := range []string{"first", "second", "first"} { // the latest of a name counts
		write(byte(i))
		s.must(p.SnapshotVMs(s.Context(), s.tag, vms, name))
	}
	write(9)
	for _, back := range []struct {
		name string
		seed byte
	}{{"second", 1}, {"first", 2}, {"first", 2}} {
		s.must(r.RevertVMs(s.Context(), s.tag, vms, back.name))
		s.wantPower(target.PowerOff)
		want(back.seed)
		write(9)
	}
	if err := r.RevertVMs(s.Context(), s.tag, vms, "never taken"); err == nil {
		s.Error("VMs returned to a snapshot that was never taken")
	}
	s.wantRefused("revert", r.RevertVMs(s.Context(), NewTag("run-1"), vms, "first"))
	if s.needs(target.CapVMPower) {
		s.powerOn(vms[:1])
		if err := r.RevertVMs(s.Context(), s.tag, vms[:1], "first"); err == nil {
			s.Error("the disks of a running VM were reverted")
		}
		s.must(require[target.VMPower](s).PowerOffVMs(s.Context(), s.tag, vms[:1]))
	}
	s.must(r.RevertVMs(s.Context(), s.tag, vms, "second"))
	want(1)
}

func maintenance(s *suite) {
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	if !s.needs(target.CapMaintenance) || len(inventory.Nodes) < 2 {
		return
	}
	m := require[target.Maintainer](s)
	if !inventory.MaintenanceAllowed {
		s.wantRefused("maintenance", m.EnterMaintenance(s.Context(), inventory.Nodes[0].ID))
		return
	}
	vms := s.create("OLTP", 2) // on the first and the second node
	s.powerOn(vms)
	left := vms[0].NodeID
	s.must(m.EnterMaintenance(s.Context(), left))
	s.must(m.EnterMaintenance(s.Context(), left)) // again
	for _, vm := range s.owned() {
		if vm.Power == target.PowerOn && vm.NodeID == left {
			s.Errorf("vm %q runs on a node in maintenance", vm.Name)
		}
	}
	s.must(m.ExitMaintenance(s.Context(), left))
	s.must(m.ExitMaintenance(s.Context(), left)) // again
	s.awaitReady()
	if err := m.EnterMaintenance(s.Context(), "no such node"); err == nil {
		s.Error("a node that does not exist is in maintenance")
	}
}

// outOfBand checks that a journal can keep the BMCs of all nodes that have one, by the ids of the inventory: cleaning powers nodes on with
// them alone. The power of simulated nodes is in the memory of the controller.
func (s *suite) outOfBand(inventory target.Inventory) {
	s.Helper()
	if _, simulated := inventory.Simulates[target.CapNodePower]; simulated || inventory.Simulated {
		return
	}
	var want, got []string
	for _, n := range inventory.Nodes {
		if n.HasBMC {
			want = append(want, n.ID)
		}
	}
	if o, ok := s.target.(target.OutOfBand); ok {
		for _, n := range o.BMCNodes() {
			if n.BMC == nil {
				s.Errorf("node %q is listed with its BMC, and has none", n.ID)
			}
			got = append(got, n.ID)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.Errorf("the BMCs of nodes %q can be kept, want those of %q", got, want)
	}
}
