package vcsim

import (
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Hosts lists the hosts of the cluster by object.
func (s *Server) Hosts() map[string]*simulator.HostSystem {
	all := map[string]*simulator.HostSystem{}
	for _, one := range s.Model.Map().All("HostSystem") {
		all[one.Reference().Value] = one.(*simulator.HostSystem)
	}
	return all
}

// SetHostPower shows what a vCenter shows when a host loses its power or gets it back: without power the host does not
// answer, and its VMs stay as they were seen last; their agents are dead. With HA they start elsewhere after its delay. The VMs
// that are still there when the power is back are off.
func (s *Server) SetHostPower(host string, on bool) {
	h := s.Hosts()[host]
	if h == nil {
		return
	}
	state := types.HostSystemConnectionStateNotResponding
	if on {
		state = types.HostSystemConnectionStateConnected
	}
	changed := false
	s.locked(h, func() {
		changed = h.Runtime.ConnectionState != state
		h.Runtime.ConnectionState = state
	})
	for _, vm := range s.on(h) {
		if on {
			s.off(vm)
		} else {
			s.guests.set(vm, false)
		}
	}
	switch {
	case !changed:
	case on:
		s.report(&types.HostConnectedEvent{}, nil, h, fmt.Sprintf("Connected to host %s", h.Name))
	default:
		s.report(&types.HostConnectionLostEvent{}, nil, h, fmt.Sprintf("Host %s is not responding", h.Name))
		if s.options.HA > 0 {
			s.work.Go(func() { s.failOver(h) })
		}
	}
}

// on lists the VMs of a host. The host's own list keeps those that govmomi's simulator moved away.
func (s *Server) on(h *simulator.HostSystem) []types.ManagedObjectReference {
	var vms []types.ManagedObjectReference
	for _, one := range s.Model.Map().All("VirtualMachine") {
		vm := one.(*simulator.VirtualMachine)
		s.locked(vm, func() {
			if vm.Runtime.Host != nil && *vm.Runtime.Host == h.Self {
				vms = append(vms, vm.Self)
			}
		})
	}
	return vms
}

func (s *Server) off(ref types.ManagedObjectReference) {
	vm := object.NewVirtualMachine(s.client.Client, ref)
	var now mo.VirtualMachine
	if err := vm.Properties(s.ctx, ref, []string{"runtime.powerState", "name"}, &now); err != nil {
		return
	}
	if now.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn || now.Name == Foreign {
		return
	}
	if task, err := vm.PowerOff(s.ctx); err == nil {
		_ = task.Wait(s.ctx)
	}
}

// HostState is what the vCenter shows of its connection with a host.
func (s *Server) HostState(h *simulator.HostSystem) (state string) {
	s.locked(h, func() { state = string(h.Runtime.ConnectionState) })
	return state
}

// Name returns the name of a host.
func (s *Server) Name(host string) string {
	if h := s.Hosts()[host]; h != nil {
		return h.Name
	}
	return fmt.Sprintf("no host %q", host)
}

// PowerOff cuts the power of a VM, as an administrator does.
func (s *Server) PowerOff(vm string) error {
	task, err := object.NewVirtualMachine(s.client.Client, s.VMs()[vm]).PowerOff(s.ctx)
	if err != nil {
		return err
	}
	return task.Wait(s.ctx)
}
