package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Transition is a change of a VM's power.
type Transition string

// Transitions, by the names of v4's actions.
const (
	PowerOn       Transition = "power-on"
	PowerOff      Transition = "power-off"
	PowerCycle    Transition = "power-cycle"
	Reset         Transition = "reset"
	Shutdown      Transition = "shutdown"
	Reboot        Transition = "reboot"
	GuestShutdown Transition = "guest-shutdown"
	GuestReboot   Transition = "guest-reboot"
)

var transitions = map[Transition]struct {
	operation     string
	needsOn       bool
	stop, start   bool
	gracefulFirst bool
}{
	PowerOn:       {operation: "VmPowerOn", start: true},
	PowerOff:      {operation: "VmPowerOff", stop: true},
	PowerCycle:    {operation: "VmPowerCycle", needsOn: true, stop: true, start: true},
	Reset:         {operation: "VmReset", needsOn: true, stop: true, start: true},
	Shutdown:      {operation: "VmShutdown", needsOn: true, stop: true, gracefulFirst: true},
	Reboot:        {operation: "VmReboot", needsOn: true, stop: true, start: true, gracefulFirst: true},
	GuestShutdown: {operation: "VmGuestShutdown", needsOn: true, stop: true, gracefulFirst: true},
	GuestReboot:   {operation: "VmGuestReboot", needsOn: true, stop: true, start: true, gracefulFirst: true},
}

// SwitchPower changes the power of a VM. hostID is where it starts; "": as it was created. A transition to the state that it has
// already succeeds without a change.
func (p *power) SwitchPower(id string, to Transition, hostID string, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	how, ok := transitions[to]
	if !ok {
		return "", Invalidf("transition %q is unknown", to)
	}
	if hostID != "" {
		if err := p.change(func(d *Data) error {
			if d.Host(hostID) == nil {
				return Missing("host", hostID)
			}
			return nil
		}); err != nil {
			return "", err
		}
	}
	return p.begin(job{
		operation: how.operation, description: how.operation + " " + name, entities: []Entity{{id, RelVM, name}},
		do: func() error {
			defer p.only(id)()
			return p.transit(id, to, hostID)
		},
	})
}

// transit changes the power of a VM that only the caller acts on.
func (p *power) transit(id string, to Transition, hostID string) error {
	how := transitions[to]
	if on, err := p.isOn(id); err != nil {
		return err
	} else if how.needsOn && !on {
		return fmt.Errorf("InvalidVmState: cannot complete request in state OFF")
	}
	if how.stop {
		p.powerOff(id, how.gracefulFirst)
	}
	if how.start {
		return p.powerOn(id, hostID)
	}
	return nil
}

func (p *power) isOn(id string) (on bool, err error) {
	err = p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil {
			return Missing("VM", id)
		}
		on = vm.Power == On
		return nil
	})
	return on, err
}

func (p *power) powerOff(id string, graceful bool) {
	p.options.Machines.Stop(id, graceful)
	_ = p.change(func(d *Data) error {
		if vm := d.VM(id); vm != nil && vm.Power != Off {
			vm.Power, vm.lost, vm.PowerChanged = Off, false, p.Now()
			vm.Version++
		}
		return nil
	})
}

// powerOn starts a VM where it can run. The caller is the only one who acts on it.
func (p *power) powerOn(id, hostID string) error {
	var m Machine
	err := p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil {
			return Missing("VM", id)
		}
		if vm.Power == On {
			return nil
		}
		host, err := d.place(vm, hostID)
		if err != nil {
			return err
		}
		vm.Power, vm.HostID, vm.PowerChanged, vm.lost = On, host.ID, p.Now(), false
		vm.Version++
		m = p.machine(vm)
		return nil
	})
	if err != nil || m.ID == "" {
		return err
	}
	if err := p.options.Machines.Start(p.ctx, m); err != nil {
		p.powerOff(id, false)
		return fmt.Errorf("InternalException: start VM %s: %w", m.Name, err)
	}
	p.cutIfLost(id)
	return nil
}

// cutIfLost ends a machine whose host lost its power while it started.
func (p *power) cutIfLost(id string) {
	lost := false
	p.Read(func(d *Data) {
		if vm := d.VM(id); vm != nil {
			host := d.Host(vm.HostID)
			lost = host != nil && !host.Up
		}
	})
	if lost {
		p.options.Machines.Stop(id, false)
	}
}

func (p *power) machine(vm *VM) Machine {
	m := Machine{
		ID: vm.ID, Name: vm.Name, VCPUs: vm.VCPUs(), MemoryBytes: vm.MemoryBytes, UserData: vm.UserData, MetaData: vm.MetaData,
	}
	disks := slices.Clone(vm.Disks)
	slices.SortStableFunc(disks, func(a, b Disk) int { return cmp.Or(cmp.Compare(busOrder(a.Bus), busOrder(b.Bus)), a.Index-b.Index) })
	for _, d := range disks {
		m.Disks = append(m.Disks, MachineDisk{Path: p.options.Disks.Path(d.ID), SizeBytes: d.SizeBytes, CDROM: d.CDROM})
	}
	for _, n := range vm.NICs {
		if n.Connected {
			m.Addresses = append(m.Addresses, n.Address)
		}
	}
	return m
}

// busOrder is that in which a guest finds disks: those of the SCSI controller first.
func busOrder(bus string) int { return slices.Index([]string{"SCSI", "PCI", "SATA", "IDE"}, bus) }

// place chooses the host of a VM: the named one or none; the wanted one if it can; the one with most free memory.
func (d *Data) place(vm *VM, named string) (*Host, error) {
	fits := func(h *Host) bool {
		return h.Usable() && d.allowed(vm, h) && d.freeMemory(h, vm) >= vm.MemoryBytes
	}
	if named != "" {
		h := d.Host(named)
		if h == nil {
			return nil, Missing("host", named)
		}
		if !fits(h) {
			return nil, fmt.Errorf("NoHostResources: VM %s cannot run on host %s", vm.Name, h.Name)
		}
		return h, nil
	}
	if h := d.Host(vm.Wanted); h != nil && fits(h) {
		return h, nil
	}
	var best *Host
	for _, h := range d.Hosts {
		if fits(h) && (best == nil || d.freeMemory(h, vm) > d.freeMemory(best, vm)) {
			best = h
		}
	}
	if best == nil {
		return nil, fmt.Errorf("NoHostResources: no host has the memory for VM %s, or affinity allows none", vm.Name)
	}
	return best, nil
}

// allowed reports whether affinity lets a VM run on a host.
func (d *Data) allowed(vm *VM, h *Host) bool {
	if len(vm.Affinity) > 0 && !slices.Contains(vm.Affinity, h.ID) {
		return false
	}
	for _, p := range d.Policies {
		if p.AntiAffinity || !meet(vm.Categories, p.VMCategories) {
			continue
		}
		if !meet(h.Categories, p.HostCategories) {
			return false
		}
	}
	return true
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// freeMemory is that of a host without a VM.
func (d *Data) freeMemory(h *Host, without *VM) int64 {
	free := h.MemoryBytes
	for _, vm := range d.VMs {
		if vm != without && vm.HostID == h.ID && vm.Power == On {
			free -= vm.MemoryBytes
		}
	}
	return free
}

// Migrate moves a VM that runs to a host, or to any other.
func (p *power) Migrate(id, hostID string, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	if err := p.change(func(d *Data) error {
		if hostID != "" && d.Host(hostID) == nil {
			return Missing("host", hostID)
		}
		return nil
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmMigrate", description: "Migrate VM", entities: []Entity{{id, RelVM, name}, {hostID, RelHost, ""}},
		do: func() error {
			defer p.only(id)()
			return p.change(func(d *Data) error {
				vm := d.VM(id)
				if vm == nil {
					return Missing("VM", id)
				}
				if vm.Power != On {
					return fmt.Errorf("InvalidVmState: cannot complete request in state %s", vm.Power)
				}
				return d.move(vm, hostID)
			})
		},
	})
}

// move makes a VM run on another host; "": the best one that is not its own.
func (d *Data) move(vm *VM, hostID string) error {
	from := vm.HostID
	if hostID == from {
		return nil
	}
	var to *Host
	for _, h := range d.Hosts {
		if h.ID == from || hostID != "" && h.ID != hostID || !h.Usable() || !d.allowed(vm, h) || d.freeMemory(h, vm) < vm.MemoryBytes {
			continue
		}
		if to == nil || d.freeMemory(h, vm) > d.freeMemory(to, vm) {
			to = h
		}
	}
	if to == nil {
		return fmt.Errorf("NoHostResources: no host can take VM %s", vm.Name)
	}
	vm.HostID, vm.Updated = to.ID, d.Now()
	vm.Version++
	return nil
}

// ended reports a machine that ended by itself: its guest shut down.
func (p *power) ended(ctx context.Context, id string) {
	if ctx.Err() == nil {
		p.powerOff(id, false)
	}
}

// Ended is called by Machines when the guest of a VM has shut itself down.
func (p *power) Ended(id string) { p.ended(p.ctx, id) }
