package state

import (
	"fmt"
	"slices"
)

// EnterMaintenance moves the VMs of a host to others and keeps new ones away.
func (p *hosts) EnterMaintenance(hostID string) (string, error) {
	name, err := p.checkHost(hostID)
	if err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "EnterHostMaintenance", description: "Enter maintenance mode", entities: []Entity{{hostID, RelHost, name}},
		do: func() error {
			var here []string
			err := p.change(func(d *Data) error {
				h := d.Host(hostID)
				if h.Maintenance == Entered {
					return nil
				}
				if !slices.ContainsFunc(d.Hosts, func(o *Host) bool { return o != h && o.Usable() }) {
					return fmt.Errorf("HostMaintenance: no other host is usable")
				}
				h.Maintenance, h.moved = Entering, nil
				h.Version++
				for _, vm := range d.VMs {
					if vm.Power == On && vm.HostID == hostID {
						here = append(here, vm.ID)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			return p.evacuate(hostID, here)
		},
	})
}

func (p *hosts) evacuate(hostID string, vmIDs []string) error {
	for _, id := range vmIDs {
		release := p.only(id)
		err := p.change(func(d *Data) error {
			vm, h := d.VM(id), d.Host(hostID)
			if vm == nil || vm.Power != On || vm.HostID != hostID {
				return nil
			}
			if err := d.move(vm, ""); err != nil {
				h.Maintenance = Normal
				return fmt.Errorf("HostMaintenance: VM %s cannot move: %w", vm.Name, err)
			}
			h.moved = append(h.moved, id)
			return nil
		})
		release()
		if err != nil {
			return err
		}
	}
	return p.change(func(d *Data) error {
		d.Host(hostID).Maintenance = Entered
		return nil
	})
}

// ExitMaintenance makes a host usable again; the VMs that left it return.
func (p *hosts) ExitMaintenance(hostID string) (string, error) {
	name, err := p.checkHost(hostID)
	if err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "ExitHostMaintenance", description: "Exit maintenance mode", entities: []Entity{{hostID, RelHost, name}},
		do: func() error {
			var back []string
			_ = p.change(func(d *Data) error {
				h := d.Host(hostID)
				back, h.moved, h.Maintenance = h.moved, nil, Normal
				h.Version++
				return nil
			})
			for _, id := range back {
				release := p.only(id)
				_ = p.change(func(d *Data) error {
					if vm := d.VM(id); vm != nil && vm.Power == On {
						return d.move(vm, hostID)
					}
					return nil
				})
				release()
			}
			return nil
		},
	})
}

func (p *base) checkHost(id string) (name string, err error) {
	err = p.change(func(d *Data) error {
		h := d.Host(id)
		if h == nil {
			return Missing("host", id)
		}
		name = h.Name
		return nil
	})
	return name, err
}

// CutHost takes the power of a host away: its machines end at once. HA restarts them elsewhere after HADelay, unless it is off.
// id may be the host's id or its name.
func (p *hosts) CutHost(id string) error {
	var lost []string
	var h *Host
	var epoch int
	if err := p.change(func(d *Data) error {
		if h = d.host(id); h == nil {
			return Missing("host", id)
		}
		if !h.Up {
			h = nil
			return nil
		}
		h.Up = false
		h.lost++
		h.Version++
		epoch = h.lost
		for _, vm := range d.VMs {
			if vm.HostID == h.ID && vm.Power == On {
				vm.lost = true
				lost = append(lost, vm.ID)
			}
		}
		return nil
	}); err != nil || h == nil {
		return err
	}
	for _, id := range lost {
		p.options.Machines.Stop(id, false)
	}
	p.background(func() {
		if p.pause(p.options.HADelay) {
			p.recover(h.ID, epoch, lost)
		}
	})
	return nil
}

// background runs what belongs to no task, until Close.
func (p *base) background(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(do)
	}
}

// recover is what HA does about a lost host.
func (p *hosts) recover(hostID string, epoch int, lost []string) {
	down := false
	_ = p.change(func(d *Data) error {
		h := d.Host(hostID)
		if down = !h.Up && h.lost == epoch; down {
			h.Down = true
			h.Version++
			d.report("HostDown", "CRITICAL", "Host is not reachable", fmt.Sprintf("Host %s is down", h.Name), Entity{h.ID, RelHost, h.Name})
		}
		return nil
	})
	for _, id := range lost {
		p.restart(id, hostID, down)
	}
}

// restart powers a VM on again that its host lost. One that may not restart elsewhere stays off until its host returns.
func (p *hosts) restart(id, from string, down bool) {
	defer p.only(id)()
	again, name := false, ""
	_ = p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil || !vm.lost || vm.Power != On {
			return nil
		}
		vm.Power, name = Off, vm.Name
		vm.Version++
		again = !down || !p.options.NoHA && vm.HAPriority >= 0
		return nil
	})
	if !again {
		return
	}
	prefer := from
	if down {
		prefer = ""
	}
	if err := p.powerOn(id, prefer); err != nil {
		_ = p.change(func(d *Data) error {
			if vm := d.VM(id); vm != nil {
				vm.lost = true
			}
			d.report("VmRestartFailure", "CRITICAL", "VM could not be restarted by HA", fmt.Sprintf("VM %s: %v", name, err), Entity{id, RelVM, name})
			return nil
		})
		return
	}
	_ = p.change(func(d *Data) error {
		text, kind := "VM %s was restarted on host %s after host %s failed", "VmHaRestart"
		d.report(kind, "INFO", "VM restarted by HA", fmt.Sprintf(text, name, d.hostName(d.VM(id)), d.Host(from).Name), Entity{id, RelVM, name})
		return nil
	})
}

func (d *Data) hostName(vm *VM) string {
	if vm == nil || d.Host(vm.HostID) == nil {
		return "?"
	}
	return d.Host(vm.HostID).Name
}

// RestoreHost gives a host its power back. VMs that it lost and that run nowhere start again.
func (p *hosts) RestoreHost(id string) error {
	var h *Host
	var waiting []string
	if err := p.change(func(d *Data) error {
		if h = d.host(id); h == nil {
			return Missing("host", id)
		}
		if h.Up {
			h = nil
			return nil
		}
		h.Up, h.Down, h.Booted = true, false, p.Now()
		h.Version++
		d.report("HostUp", "INFO", "Host is reachable", fmt.Sprintf("Host %s is up", h.Name), Entity{h.ID, RelHost, h.Name})
		for _, e := range d.Events {
			if e.Kind == "HostDown" && e.Source.ID == h.ID {
				e.Resolved = true
			}
		}
		for _, vm := range d.VMs {
			if vm.lost && vm.HostID == h.ID {
				vm.Power = On // as its host left it; restart powers it on
				waiting = append(waiting, vm.ID)
			}
		}
		return nil
	}); err != nil || h == nil {
		return err
	}
	p.background(func() {
		for _, id := range waiting {
			p.restart(id, h.ID, false)
		}
	})
	return nil
}

// MoveVM moves a VM that runs to another host without a request, as the scheduler of the cluster does, and reports it.
func (p *hosts) MoveVM(id, hostID string) error {
	defer p.only(id)()
	return p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil {
			return Missing("VM", id)
		}
		from := d.hostName(vm)
		if err := d.move(vm, hostID); err != nil {
			return err
		}
		d.report("VmAdsMigrate", "INFO", "VM migrated by ADS", fmt.Sprintf("VM %s was migrated from host %s to host %s", vm.Name, from, d.hostName(vm)),
			Entity{vm.ID, RelVM, vm.Name})
		return nil
	})
}

// host finds a host by id or name.
func (d *Data) host(id string) *Host {
	if h := d.Host(id); h != nil {
		return h
	}
	return find(d.Hosts, id, func(h *Host) string { return h.Name })
}

// eventsMax bounds what is remembered.
const eventsMax = 5000

func (d *Data) report(kind, severity, title, message string, source Entity) {
	d.Events = append(d.Events, &Event{
		ID: NewID(), Kind: kind, Severity: severity, Title: title, Message: message, At: d.Now(), Source: source,
	})
	if over := len(d.Events) - eventsMax; over > 0 {
		d.Events = slices.Delete(d.Events, 0, over)
	}
}

// HA reports whether VMs of a lost host restart elsewhere.
func (p *hosts) HA() bool { return !p.options.NoHA }
