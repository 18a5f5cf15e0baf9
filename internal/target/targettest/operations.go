package targettest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

func power(s *suite) {
	if !s.needs(target.CapVMPower) {
		return
	}
	p := require[target.VMPower](s)
	vms := s.create("OLTP", 3)
	s.must(p.PowerOnVMs(s.Context(), s.tag, vms))
	s.wantPower(target.PowerOn)
	s.must(p.PowerOnVMs(s.Context(), s.tag, vms)) // running ones are skipped
	s.must(p.PowerOffVMs(s.Context(), s.tag, vms[:1]))
	got := s.owned()
	if got[0].Power != target.PowerOff || got[1].Power != target.PowerOn {
		s.Errorf("power is %s and %s, want off and on", got[0].Power, got[1].Power)
	}
	s.must(p.PowerOffVMs(s.Context(), s.tag, vms))
	s.must(p.PowerOffVMs(s.Context(), s.tag, vms)) // VMs that are off stay off
	s.wantPower(target.PowerOff)
	for range 3 {
		s.must(p.PowerOnVMs(s.Context(), s.tag, vms))
		s.must(p.PowerOffVMs(s.Context(), s.tag, vms))
	}
	s.must(p.PowerOnVMs(s.Context(), s.tag, vms))
	s.must(s.target.Delete(s.Context(), s.tag, vms)) // running
	s.must(p.PowerOffVMs(s.Context(), s.tag, vms))   // a deleted VM is off
	if err := p.PowerOnVMs(s.Context(), s.tag, vms[:1]); err == nil {
		s.Error("a deleted VM was powered on")
	}
}

func dial(s *suite) {
	if !s.needs(target.CapAgents) {
		return
	}
	d := require[target.AgentDialer](s)
	vms := s.create("OLTP", 2)
	if conn, err := d.DialAgent(s.Context(), vms[0]); err == nil {
		_ = conn.Close()
		s.Error("the agent of a VM without power answered")
	}
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	seen := map[string]bool{}
	for range 2 {
		s.powerOn(vms)
		var conns []net.Conn
		for _, vm := range vms {
			conn, err := d.DialAgent(s.Context(), vm)
			s.must(err)
			conns = append(conns, conn)
			if _, network := conn.(interface{ ConnectionState() tls.ConnectionState }); inventory.Systems && !network {
				s.Errorf("the connection to a guest is a %T: the controller would not dial again when it breaks", conn)
			}
			who, err := s.h.Greet(s.Context(), conn)
			s.must(err)
			if seen[who] {
				s.Errorf("agent %q answered twice: for two VMs or in two power cycles", who)
			}
			seen[who] = true
		}
		s.must(require[target.VMPower](s).PowerOffVMs(s.Context(), s.tag, vms))
		for _, conn := range conns {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				s.Error("a connection outlived the power of its VM")
			}
			_ = conn.Close()
		}
	}
}

func pattern(seed byte) []byte {
	data := make([]byte, 8192)
	for i := range data {
		data[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	return data
}

func clone(s *suite) {
	if !s.needs(target.CapClone) {
		return
	}
	c := require[target.Cloner](s)
	source := s.create("OLTP", 1)[0]
	if s.h.WriteDisk != nil {
		s.h.WriteDisk(s.T, source, source.Disks[0], 0, pattern(1))
		s.h.WriteDisk(s.T, source, source.Disks[1], source.Disks[1].SizeBytes-8192, pattern(2))
	}
	if s.needs(target.CapVMPower) {
		s.powerOn([]target.VM{source}) // in any state, running or not
	}
	for i, linked := range []bool{false, true} {
		specs := s.specs(fmt.Sprintf("CLONE%d", i), 2)
		clones, err := c.CloneVM(s.Context(), s.tag, source, specs, linked)
		s.must(err)
		if want := []string{specs[0].Name, specs[1].Name}; !slices.Equal(names(clones), want) {
			s.Fatalf("clones are %q, want %q", names(clones), want)
		}
		for j, clone := range clones {
			if clone.Power != target.PowerOff || clone.NodeID != specs[j].NodeID || clone.ID == source.ID {
				s.Errorf("clone is %+v", clone)
			}
			s.wantCopy(clone)
		}
		if s.h.WriteDisk != nil {
			s.h.WriteDisk(s.T, clones[0], clones[0].Disks[0], 0, pattern(7)) // independent of the source and of each other
			s.wantCopy(source)
			s.wantCopy(clones[1])
		}
	}
	wrong := s.specs("WRONG", 1)
	wrong[0].DiskBytes = wrong[0].DiskBytes[:1]
	if _, err := c.CloneVM(s.Context(), s.tag, source, wrong, false); err == nil {
		s.Error("a clone with fewer disks than its source was made")
	}
	s.must(s.target.Delete(s.Context(), s.tag, []target.VM{source}))
	for _, vm := range s.owned() {
		if vm.Group == "CLONE0" && vm.Ordinal == 1 {
			s.wantCopy(vm) // a clone survives its source
		}
	}
}

func (s *suite) wantCopy(vm target.VM) {
	s.Helper()
	if s.h.ReadDisk == nil {
		return
	}
	first := s.h.ReadDisk(s.T, vm, vm.Disks[0], 0, 8192)
	second := s.h.ReadDisk(s.T, vm, vm.Disks[1], vm.Disks[1].SizeBytes-8192, 8192)
	if !bytes.Equal(first, pattern(1)) || !bytes.Equal(second, pattern(2)) {
		s.Errorf("vm %q does not hold the data of its source", vm.Name)
	}
	middle := s.h.ReadDisk(s.T, vm, vm.Disks[1], 4096, 4096)
	if !bytes.Equal(middle, make([]byte, 4096)) {
		s.Errorf("vm %q holds data where its source has none", vm.Name)
	}
}

func snapshot(s *suite) {
	if !s.needs(target.CapSnapshot) {
		return
	}
	p := require[target.Snapshotter](s)
	vms := s.create("OLTP", 2)
	for range 3 {
		s.must(p.SnapshotVMs(s.Context(), s.tag, vms, "same name"))
	}
	if s.needs(target.CapVMPower) {
		s.powerOn(vms)
		s.must(p.SnapshotVMs(s.Context(), s.tag, vms, "running"))
		s.wantPower(target.PowerOn)
	}
	s.must(s.target.Delete(s.Context(), s.tag, vms))
	if err := p.SnapshotVMs(s.Context(), s.tag, vms, "gone"); err == nil {
		s.Error("a deleted VM has a snapshot")
	}
}

func migrate(s *suite) {
	if !s.needs(target.CapMigrate) {
		return
	}
	m := require[target.Migrator](s)
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	vms := s.create("OLTP", 2)
	s.powerOn(vms[:1])
	to := inventory.Nodes[len(inventory.Nodes)-1].ID
	s.must(m.MigrateVMs(s.Context(), s.tag, vms, to))
	s.must(m.MigrateVMs(s.Context(), s.tag, vms, to)) // to their current node
	for _, vm := range s.owned() {
		if vm.NodeID != to {
			s.Errorf("vm %q is on %q, want %q", vm.Name, vm.NodeID, to)
		}
	}
	if got := s.owned(); got[0].Power != target.PowerOn {
		s.Error("a VM lost its power when it moved")
	}
	if err := m.MigrateVMs(s.Context(), s.tag, vms, "no such node"); err == nil {
		s.Error("VMs moved to a node that does not exist")
	}
}

func nodePower(s *suite) {
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	if !s.needs(target.CapNodePower) || len(inventory.Nodes) < 2 {
		return
	}
	p := require[target.NodePower](s)
	if !inventory.PowerAllowed {
		s.wantRefused("power off node", p.PowerOffNode(s.Context(), inventory.Nodes[0].ID))
		return
	}
	s.outOfBand(inventory)
	vms := s.create("OLTP", 2) // on the first and the second node
	off, on := vms[0].NodeID, vms[1].NodeID
	movedAway := s.movedAway(off, on)
	for name, cut := range map[string]func(context.Context, string) error{"cut": p.PowerOffNode, "shut down": p.ShutdownNode} {
		s.powerOn(vms)
		s.must(cut(s.Context(), off))
		s.must(cut(s.Context(), off)) // again
		s.wantNode(p, off, target.PowerOff)
		s.wantNode(p, on, target.PowerOn)
		got := s.owned()
		if got[0].Power != target.PowerOff || got[1].Power != target.PowerOn {
			s.Errorf("%s: VMs are %s and %s, want off and on", name, got[0].Power, got[1].Power)
		}
		movedAway()
		if err := require[target.VMPower](s).PowerOnVMs(s.Context(), s.tag, vms[:1]); err == nil {
			s.Errorf("%s: a VM runs on a node without power", name)
		}
		if _, err := s.target.Create(s.Context(), s.tag, s.specs("LATE", 1)); err == nil {
			s.Errorf("%s: a VM was created on a node without power", name)
		}
		if r, ok := s.target.(target.ReadyChecker); ok && r.Ready(s.Context()) == nil {
			s.Errorf("%s: the target is ready without a node", name)
		}
		s.must(p.PowerOnNode(s.Context(), off))
		s.must(p.PowerOnNode(s.Context(), off)) // again
		s.wantNode(p, off, target.PowerOn)
		s.awaitReady()
		movedAway()
	}
	for _, err := range []error{p.PowerOffNode(s.Context(), "no such node"), p.PowerOnNode(s.Context(), "no such node")} {
		if err == nil {
			s.Error("a node that does not exist was switched")
		}
	}
}

// movedAway moves a VM with power from one node to another. What it returns checks that the VM still runs.
func (s *suite) movedAway(from, to string) (check func()) {
	m, ok := s.target.(target.Migrator)
	if !ok || !slices.Contains(s.caps, target.CapMigrate) {
		return func() {}
	}
	vms := s.create("VDI", 1)
	s.powerOn(vms)
	s.must(m.MigrateVMs(s.Context(), s.tag, vms, from))
	s.must(m.MigrateVMs(s.Context(), s.tag, vms, to))
	return func() {
		s.Helper()
		for _, vm := range s.owned() {
			if vm.Name == vms[0].Name && (vm.Power != target.PowerOn || vm.NodeID != to) {
				s.Errorf("a VM that had moved from %q to %q before is %s on %q", from, to, vm.Power, vm.NodeID)
			}
		}
	}
}

// awaitReady waits until the target is ready again: a node that was switched on boots first.
func (s *suite) awaitReady() {
	s.Helper()
	r, ok := s.target.(target.ReadyChecker)
	if !ok {
		return
	}
	var err error
	for range readyLooksMax {
		if err = r.Ready(s.Context()); err == nil {
			return
		}
		time.Sleep(readyPause)
	}
	s.Fatalf("the target does not become ready: %v", err)
}

const (
	readyLooksMax = 600
	readyPause    = 200 * time.Millisecond
)

func (s *suite) wantNode(p target.NodePower, id string, want target.PowerState) {
	s.Helper()
	got, err := p.NodePowerState(s.Context(), id)
	if err != nil || got != want {
		s.Errorf("node %q is %s, %v, want %s", id, got, err, want)
	}
}

func nodeMeter(s *suite) {
	if !s.needs(target.CapNodeMeter) {
		return
	}
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	s.powerOn(s.create("OLTP", 2))
	wanted := map[string]bool{}
	for _, n := range inventory.Nodes {
		for _, metric := range []string{
			"CpuUsage.Avg.Percent", "CpuUsage.Avg.Megahertz", "MemUsage.Avg.Percent", "NetReceived.Avg.KilobytesPerSecond",
			"NetTransmitted.Avg.KilobytesPerSecond",
		} {
			if !slices.Contains(s.h.Uncounted, metric) {
				wanted[n.ID+" "+metric] = true
			}
		}
	}
	missing := maps.Clone(wanted)
	s.polls(func() bool {
		samples, err := require[target.NodeMeter](s).SampleNodes(s.Context())
		s.must(err)
		for _, sample := range samples {
			key := sample.NodeID + " " + sample.Metric
			if slices.Contains(s.h.Uncounted, sample.Metric) || sample.Value < 0 || sample.Value != sample.Value {
				s.Errorf("sample %+v", sample)
			}
			s.wantNew(key, sample.At)
			delete(missing, key)
		}
		return len(missing) == 0
	})
	for key := range missing {
		s.Errorf("no sample of %s", key)
	}
}

func placement(s *suite) {
	if !s.needs(target.CapPlacement) {
		return
	}
	p := require[target.Placer](s)
	vms := s.create("OLTP", 1)
	for _, enabled := range []bool{true, true, false} {
		s.must(p.SetHA(s.Context(), s.tag, vms, enabled))
		s.must(p.SetBalancing(s.Context(), s.tag, vms, enabled))
	}
}

func cancelled(s *suite) {
	vms := s.create("OLTP", 2)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	want := func(what string, err error) {
		s.Helper()
		if err == nil {
			s.Errorf("%s succeeded although its context had ended", what)
		}
	}
	_, err := s.target.Create(ctx, s.tag, s.specs("LATE", 2))
	want("create", err)
	_, err = s.target.Owned(ctx, s.tag)
	want("owned", err)
	if p, ok := s.target.(target.VMPower); ok {
		want("power on", p.PowerOnVMs(ctx, s.tag, vms))
	}
	if c, ok := s.target.(target.Cloner); ok {
		_, err = c.CloneVM(ctx, s.tag, vms[0], s.specs("CLONE", 1), false)
		want("clone", err)
	}
	if p, ok := s.target.(target.Snapshotter); ok {
		want("snapshot", p.SnapshotVMs(ctx, s.tag, vms, "late"))
	}
	if got := names(s.owned()); !slices.Equal(got, names(vms)) {
		s.Errorf("owned are %q, want %q", got, names(vms))
	}
	s.wantPower(target.PowerOff)
}

func concurrent(s *suite) {
	const workers = 6
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			vms, err := s.target.Create(s.Context(), s.tag, s.specs(fmt.Sprintf("G%d", w), 2))
			if err != nil {
				s.Error(err)
				return
			}
			p, ok := s.target.(target.VMPower)
			for i := range 2 {
				if ok {
					if err := p.PowerOnVMs(s.Context(), s.tag, vms); err != nil {
						s.Error(err)
					}
				}
				if _, err := s.target.Owned(s.Context(), s.tag); err != nil {
					s.Error(err)
				}
				if m, _ := target.Meters(s.target); m != nil {
					if _, err := m.SampleNodes(s.Context()); err != nil {
						s.Error(err)
					}
				}
				if ok && i == 0 {
					if err := p.PowerOffVMs(s.Context(), s.tag, vms); err != nil {
						s.Error(err)
					}
				}
			}
			var deletes sync.WaitGroup
			for range 2 { // two concurrent calls delete the same VMs
				deletes.Go(func() {
					if err := s.target.Delete(s.Context(), s.tag, vms); err != nil {
						s.Error(err)
					}
				})
			}
			deletes.Wait()
		})
	}
	all.Wait()
	if got := s.owned(); len(got) != 0 {
		s.Errorf("%q are left", names(got))
	}
}

func reopened(s *suite) {
	if s.h.Reopen == nil {
		return
	}
	vms := s.create("OLTP", 2)
	if s.needs(target.CapVMPower) {
		s.powerOn(vms[:1])
	}
	again := s.h.Reopen(s.T, s.target)
	defer again.Close()
	other := &suite{T: s.T, h: s.h, target: again, tag: s.tag, caps: s.caps}
	got := other.owned()
	if !slices.Equal(names(got), names(vms)) {
		s.Fatalf("found %q, want %q", names(got), names(vms))
	}
	if s.needs(target.CapVMPower) && (got[0].Power != target.PowerOn || got[1].Power != target.PowerOff) {
		s.Errorf("found power %s and %s, want on and off", got[0].Power, got[1].Power)
	}
	s.must(again.Delete(s.Context(), s.tag, got))
	if left := other.owned(); len(left) != 0 {
		s.Errorf("%q are left", names(left))
	}
}

func closed(s *suite) {
	s.must(s.target.Delete(s.Context(), s.tag, s.create("OLTP", 1)))
	s.must(s.target.Close())
	s.must(s.target.Close()) // again
	s.done = true
	if p, ok := s.target.(target.VMPower); ok {
		vm := target.VM{ID: "gone", Name: "gone"}
		if err := p.PowerOnVMs(context.Background(), s.tag, []target.VM{vm}); err == nil {
			s.Error("a closed target powered on a VM")
		}
	}
}
