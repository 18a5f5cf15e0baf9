package targettest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

func inventory(s *suite) {
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	if inventory.Provider == "" || inventory.Name == "" || len(inventory.Nodes) == 0 {
		s.Fatalf("the inventory lacks a provider, a name or nodes: %+v", inventory)
	}
	seen := map[string]bool{}
	for _, n := range inventory.Nodes {
		if n.ID == "" || n.Name == "" || seen[n.ID] {
			s.Errorf("node %+v has no identity of its own", n)
		}
		seen[n.ID] = true
	}
	if !inventory.AnyTemplate && len(inventory.Templates) == 0 {
		s.Error("no template to create VMs from")
	}
	for c := range inventory.Simulates {
		if !slices.Contains(s.caps, c) {
			s.Errorf("%q is simulated and not offered", c)
		}
	}
	again, err := s.target.Inventory(s.Context())
	s.must(err)
	if !reflect.DeepEqual(inventory.Nodes, again.Nodes) {
		s.Error("the order of nodes changed between two calls")
	}
}

func createAndDelete(s *suite) {
	specs := s.specs("OLTP", 3)
	vms, err := s.target.Create(s.Context(), s.tag, specs)
	s.must(err)
	if len(vms) != len(specs) {
		s.Fatalf("created %d VMs, want %d", len(vms), len(specs))
	}
	ids := map[string]bool{}
	for i, vm := range vms {
		spec := specs[i]
		if vm.Name != spec.Name || vm.Group != spec.Group || vm.Ordinal != spec.Ordinal || vm.NodeID != spec.NodeID {
			s.Errorf("vm %d is %+v, want %+v", i, vm, spec)
		}
		if vm.ID == "" || ids[vm.ID] {
			s.Errorf("vm %q has no identity of its own: %q", vm.Name, vm.ID)
		}
		ids[vm.ID] = true
		if vm.Power != target.PowerOff {
			s.Errorf("vm %q is %s after its creation", vm.Name, vm.Power)
		}
		if len(vm.Disks) != 2 || vm.Disks[0].Device != "/dev/sdb" || vm.Disks[1].Device != "/dev/sdc" ||
			vm.Disks[0].SizeBytes != spec.DiskBytes[0] || vm.Disks[1].SizeBytes != spec.DiskBytes[1] {
			s.Errorf("vm %q has disks %+v, want sizes %v", vm.Name, vm.Disks, spec.DiskBytes)
		}
		s.wantZeros(vm)
	}
	if got := s.owned(); !reflect.DeepEqual(got, vms) {
		s.Errorf("owned are %+v, want %+v", got, vms)
	}
	if _, err := s.target.Create(s.Context(), s.tag, specs[:1]); err == nil {
		s.Error("a VM was created twice")
	}
	s.must(s.target.Delete(s.Context(), s.tag, vms[:1]))
	s.must(s.target.Delete(s.Context(), s.tag, vms[:1])) // again
	if got := names(s.owned()); !slices.Equal(got, names(vms[1:])) {
		s.Errorf("after deleting one, %q are left", got)
	}
	s.must(s.target.Delete(s.Context(), s.tag, vms)) // one of them is gone already
	s.must(s.target.Delete(s.Context(), s.tag, nil))
	if got := s.owned(); len(got) != 0 {
		s.Errorf("after deleting all, %q are left", names(got))
	}
	again, err := s.target.Create(s.Context(), s.tag, specs) // names are free again
	s.must(err)
	for _, vm := range again {
		s.wantZeros(vm)
	}
}

// wantZeros checks that the disks of a new VM are empty.
func (s *suite) wantZeros(vm target.VM) {
	s.Helper()
	if s.h.ReadDisk == nil {
		return
	}
	for _, d := range vm.Disks {
		for _, offset := range []int64{0, d.SizeBytes - 4096} {
			data := s.h.ReadDisk(s.T, vm, d, offset, 4096)
			if slices.ContainsFunc(data, func(b byte) bool { return b != 0 }) {
				s.Errorf("disk %s of the new vm %q is not empty at %d", d.Device, vm.Name, offset)
			}
		}
	}
}

func allOrNothing(s *suite) {
	specs := s.specs("OLTP", 3)
	specs[2].NodeID = "no such node"
	if vms, err := s.target.Create(s.Context(), s.tag, specs); err == nil {
		s.Errorf("created %q on a node that does not exist", names(vms))
	}
	// VMs that were made by then can be found, and do not block the next attempt.
	s.must(s.target.Delete(s.Context(), s.tag, s.owned()))
	specs[2].NodeID = specs[0].NodeID
	_, err := s.target.Create(s.Context(), s.tag, specs)
	s.must(err)
}

func foreignTag(s *suite) {
	vms := s.create("OLTP", 2)
	if s.needs(target.CapVMPower) {
		s.powerOn(vms[:1])
	}
	foreign := NewTag("run-1")
	same := s.tag
	same.Nonce = strings.Repeat("0", len(same.Nonce))
	for _, tag := range []target.Tag{foreign, same} {
		s.wantRefused("delete", s.target.Delete(s.Context(), tag, vms))
		if got, err := s.target.Owned(s.Context(), tag); err != nil || len(got) != 0 {
			s.Errorf("another tag owns %q, %v", names(got), err)
		}
		if p, ok := s.target.(target.VMPower); ok {
			s.wantRefused("power on", p.PowerOnVMs(s.Context(), tag, vms))
			s.wantRefused("power off", p.PowerOffVMs(s.Context(), tag, vms))
		}
		if c, ok := s.target.(target.Cloner); ok {
			_, err := c.CloneVM(s.Context(), tag, vms[0], s.specs("CLONE", 1), false)
			s.wantRefused("clone", err)
		}
		if p, ok := s.target.(target.Snapshotter); ok {
			s.wantRefused("snapshot", p.SnapshotVMs(s.Context(), tag, vms, "s"))
		}
		if m, ok := s.target.(target.Migrator); ok {
			s.wantRefused("migrate", m.MigrateVMs(s.Context(), tag, vms, vms[0].NodeID))
		}
	}
	if got := s.owned(); len(got) != 2 {
		s.Fatalf("a stranger removed VMs: %q are left", names(got))
	}
	if s.needs(target.CapVMPower) && s.owned()[0].Power != target.PowerOn {
		s.Error("a stranger switched a VM off")
	}
	// A mixed list is refused as a whole.
	other := suite{T: s.T, h: s.h, target: s.target, tag: foreign, caps: s.caps}
	theirs := other.create("THEIRS", 1)
	s.wantRefused("delete", s.target.Delete(s.Context(), s.tag, append(slices.Clone(vms), theirs...)))
	if len(s.owned()) != 2 || len(other.owned()) != 1 {
		s.Error("a list with a foreign VM in it was acted on")
	}
	s.must(s.target.Delete(s.Context(), foreign, theirs))
}

func incompleteTag(s *suite) {
	for _, tag := range []target.Tag{{}, {Run: "run-1"}, {Run: "run-1", Nonce: "short"}, {Nonce: s.tag.Nonce}} {
		if _, err := s.target.Create(s.Context(), tag, s.specs("OLTP", 1)); err == nil {
			s.Errorf("created a VM with the tag %+v", tag)
		}
		if _, err := s.target.Owned(s.Context(), tag); err == nil {
			s.Errorf("listed VMs by the tag %+v", tag)
		}
	}
}

func twoOwners(s *suite) {
	mine := s.create("OLTP", 1)
	other := suite{T: s.T, h: s.h, target: s.target, tag: NewTag("run-2"), caps: s.caps}
	theirs := other.create("OLTP", 1)
	if mine[0].ID == theirs[0].ID {
		s.Fatal("two VMs share an identity")
	}
	s.must(s.target.Delete(s.Context(), s.tag, mine))
	if got := other.owned(); len(got) != 1 {
		s.Error("deleting a VM removed another one with the same name")
	}
	s.must(s.target.Delete(s.Context(), other.tag, theirs))
}

func hostileNames(s *suite) {
	hostile := []string{
		"", ".", "..", "/", "../../etc/passwd", "a/b", "a\\b", "a\nb", "a\x00b", " ", "-rf", "*", "$(reboot)", "`id`",
		"наименование", "👩‍👩‍👧", strings.Repeat("x", 300), strings.Repeat("é", 300), "con", "vm.json", ".owner",
		"A", "a", "snapshots", "%2e%2e", "{{7*7}}", "'; DROP TABLE vms;--",
	}
	specs := s.specs("G", len(hostile))
	for i, name := range hostile {
		specs[i].Name, specs[i].Group = name, name
	}
	vms, err := s.target.Create(s.Context(), s.tag, specs)
	s.must(err)
	got := names(s.owned())
	want := slices.Clone(hostile)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("owned are %q, want %q", got, want)
	}
	if p, ok := s.target.(target.VMPower); ok {
		s.must(p.PowerOnVMs(s.Context(), s.tag, vms))
		s.wantPower(target.PowerOn)
		s.must(p.PowerOffVMs(s.Context(), s.tag, vms))
	}
	if p, ok := s.target.(target.Snapshotter); ok {
		for _, name := range hostile {
			s.must(p.SnapshotVMs(s.Context(), s.tag, vms[:1], name))
		}
	}
	for _, id := range hostile {
		vm := vms[0]
		vm.ID = id
		if err := s.target.Delete(s.Context(), s.tag, []target.VM{vm}); err != nil {
			s.Errorf("deleting the VM %q, which does not exist: %v", id, err)
		}
	}
	if len(s.owned()) != len(hostile) {
		s.Error("a made-up identity removed a VM")
	}
}

func values(s *suite) {
	vms := s.create("OLTP", 1)
	before := s.owned()
	vms[0].Disks[0].SizeBytes, vms[0].Disks[0].Path = 1, "elsewhere"
	if len(vms[0].Addresses) > 0 {
		vms[0].Addresses[0] = "elsewhere"
	}
	mine := s.owned()
	mine[0].Disks[0].Device = "elsewhere"
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	inventory.Nodes[0].ID = "elsewhere"
	if got := s.owned(); !reflect.DeepEqual(got, before) {
		s.Errorf("a caller changed the target's own state: %+v, want %+v", got, before)
	}
	again, err := s.target.Inventory(s.Context())
	s.must(err)
	if again.Nodes[0].ID == "elsewhere" {
		s.Error("a caller changed the target's own nodes")
	}
}
