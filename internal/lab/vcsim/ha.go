package vcsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// HA of the cluster is simulated: govmomi's simulator restarts nothing.

// enableHA switches HA on in the settings of the cluster.
func (s *Server) enableHA() error {
	for _, one := range s.Model.Map().All("ClusterComputeResource") {
		t, err := object.NewClusterComputeResource(s.client.Client, one.Reference()).Reconfigure(s.ctx,
			&types.ClusterConfigSpecEx{DasConfig: &types.ClusterDasConfigInfo{Enabled: types.NewBool(true)}}, true)
		if err == nil {
			err = t.Wait(s.ctx)
		}
		if err != nil {
			return fmt.Errorf("switch HA on: %w", err)
		}
	}
	return nil
}

// failOver starts the VMs of a lost host on the others, if it is still lost after the delay.
func (s *Server) failOver(lost *simulator.HostSystem) {
	timer := time.NewTimer(s.options.HA)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return
	}
	if s.HostState(lost) == string(types.HostSystemConnectionStateConnected) {
		return
	}
	s.report(&types.EventEx{EventTypeId: "com.vmware.vc.HA.DasHostFailedEvent", Severity: "error"}, nil, lost,
		fmt.Sprintf("vSphere HA detected a host failure on host %s in the cluster", lost.Name))
	disabled := s.withoutHA()
	var others []*simulator.HostSystem
	for _, h := range s.Hosts() {
		if h != lost && s.HostState(h) == string(types.HostSystemConnectionStateConnected) {
			others = append(others, h)
		}
	}
	slices.SortFunc(others, func(a, b *simulator.HostSystem) int { return strings.Compare(a.Name, b.Name) })
	for i, ref := range s.on(lost) {
		vm, ok := s.Model.Map().Get(ref).(*simulator.VirtualMachine)
		if !ok || len(others) == 0 {
			continue
		}
		on := false
		s.locked(vm, func() { on = vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn })
		switch {
		case !on:
		case disabled[ref]:
			s.report(&types.EventEx{EventTypeId: "com.vmware.vc.HA.VMIsHADisabledRestartEvent", Severity: "info"}, vm, lost,
				fmt.Sprintf("vSphere HA did not attempt to restart %s on host %s, because vSphere HA restart is disabled for it", vm.Name, lost.Name))
		default:
			s.restart(vm, lost, others[i%len(others)])
		}
	}
}

// restart starts a VM on another host.
func (s *Server) restart(vm *simulator.VirtualMachine, from, to *simulator.HostSystem) {
	c := s.Model.Service.Context
	c.Map.RemoveReference(c, from, &from.Vm, vm.Self)
	c.Map.AddReference(c, to, &to.Vm, vm.Self)
	s.locked(vm, func() {
		host := to.Self
		c.Update(vm, []types.PropertyChange{
			{Name: "runtime.host", Val: &host}, {Name: "summary.runtime.host", Val: &host},
		})
	})
	s.guests.changes <- change{vm: vm.Self, on: true}
	s.report(&types.EventEx{EventTypeId: "com.vmware.vc.ha.VmRestartedByHAEvent", Severity: "warning"}, vm, to,
		fmt.Sprintf("vSphere HA restarted virtual machine %s on host %s", vm.Name, to.Name))
}

// withoutHA are the VMs that HA does not restart.
func (s *Server) withoutHA() map[types.ManagedObjectReference]bool {
	off := map[types.ManagedObjectReference]bool{}
	for _, one := range s.Model.Map().All("ClusterComputeResource") {
		var c mo.ClusterComputeResource
		if err := s.client.RetrieveOne(s.ctx, one.Reference(), []string{"configurationEx"}, &c); err != nil {
			continue
		}
		config, ok := c.ConfigurationEx.(*types.ClusterConfigInfoEx)
		if !ok {
			continue
		}
		for _, o := range config.DasVmConfig {
			if o.DasSettings != nil && o.DasSettings.RestartPriority == string(types.ClusterDasVmSettingsRestartPriorityDisabled) {
				off[o.Key] = true
			}
		}
	}
	return off
}

// report makes an event of the vCenter, with the text that a real one gives it.
func (s *Server) report(e types.BaseEvent, vm *simulator.VirtualMachine, h *simulator.HostSystem, text string) {
	about := e.GetEvent()
	about.Host = &types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: h.Name}, Host: h.Self}
	about.FullFormattedMessage = text
	if vm != nil {
		about.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: vm.Name}, Vm: vm.Self}
	}
	if x, ok := e.(*types.EventEx); ok {
		x.ObjectType, x.ObjectId = h.Self.Type, h.Self.Value // without them the simulator panics, with its locks held
		if vm != nil {
			x.ObjectType, x.ObjectId = vm.Self.Type, vm.Self.Value
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	_ = event.NewManager(s.client.Client).PostEvent(ctx, e)
}
