package vsphere

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// agents are the connections to agents of VMs.
type agents struct {
	*agentlink.Dialer
	site  *site
	power *nodePower

	mu    sync.Mutex
	heard map[string]time.Time                    // when agents were heard last, by VM
	refs  map[string]types.ManagedObjectReference // of VMs, by id
}

func newAgents(s *site, authority *trust.Authority, power *nodePower) *agents {
	a := &agents{site: s, power: power, heard: map[string]time.Time{}, refs: map[string]types.ManagedObjectReference{}}
	a.Dialer = &agentlink.Dialer{Authority: authority, AddressOf: a.AddressOf, MayAnswer: a.mayAnswer, Heard: a.hear}
	return a
}

func (a *agents) hear(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard[id] = time.Now()
}

// AddressOf returns the address that was given to a VM, or that its tools report; see target.Addresser.
func (a *agents) AddressOf(ctx context.Context, vm target.VM) (string, error) {
	if len(vm.Addresses) > 0 {
		return vm.Addresses[0], nil
	}
	now, err := a.now(ctx, vm)
	if err != nil {
		return "", err
	}
	if now.Guest != nil {
		if ip, err := netip.ParseAddr(now.Guest.IpAddress); err == nil {
			return ip.String(), nil
		}
	}
	return "", errors.New("VMware Tools of the guest report no address yet")
}

// now reads a VM as it is.
func (a *agents) now(ctx context.Context, vm target.VM) (*mo.VirtualMachine, error) {
	ref, err := a.ref(ctx, vm)
	if err != nil {
		return nil, err
	}
	var now mo.VirtualMachine
	err = a.site.vc.Collector().RetrieveOne(ctx, ref, []string{"runtime.powerState", "runtime.host", "guest.ipAddress"}, &now)
	if vcenter.Gone(err) {
		a.mu.Lock()
		delete(a.refs, vm.ID)
		a.mu.Unlock()
		return nil, errGone
	}
	if err != nil {
		return nil, a.site.vc.Explain(fmt.Sprintf("read vm %q", vm.Name), err)
	}
	return &now, nil
}

// ref finds the object of a VM. It stays the same for as long as the VM exists.
func (a *agents) ref(ctx context.Context, vm target.VM) (types.ManagedObjectReference, error) {
	if err := a.site.usable(ctx); err != nil {
		return types.ManagedObjectReference{}, err
	}
	a.mu.Lock()
	known, ok := a.refs[vm.ID]
	a.mu.Unlock()
	if ok {
		return known, nil
	}
	s, err := a.site.survey(ctx)
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, one := range s.vms {
		a.refs[id] = one.ref
	}
	if one := s.vms[vm.ID]; one != nil {
		return one.ref, nil
	}
	return types.ManagedObjectReference{}, errGone
}

// confirmAfter is between the two looks at a VM that seems to have stopped: while HA restarts it elsewhere it is off.
const confirmAfter = time.Second

// mayAnswer returns why an agent cannot answer; a target.StoppedError where dialling again is pointless. A host that does
// not answer is not a reason: its VMs may still run.
func (a *agents) mayAnswer(ctx context.Context, vm target.VM, _ bool) error {
	noticed := time.Now()
	for confirmed := false; ; confirmed = true {
		err := a.check(ctx, vm)
		var stopped *target.StoppedError
		switch {
		case !errors.As(err, &stopped):
			return err
		case confirmed:
			a.date(stopped, vm.ID, noticed)
			return err
		}
		if err := wait.For(ctx, confirmAfter); err != nil {
			return err
		}
	}
}

func (a *agents) check(ctx context.Context, vm target.VM) error {
	now, err := a.now(ctx, vm)
	switch {
	case errors.Is(err, errGone):
		return &target.StoppedError{VM: vm.Name, Reason: "it is gone from the vCenter"}
	case err != nil:
		return err
	case now.Runtime.PowerState == types.VirtualMachinePowerStateSuspended:
		return &target.StoppedError{VM: vm.Name, Reason: "a user suspended it"}
	case now.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn:
		return &target.StoppedError{VM: vm.Name, Reason: "it is powered off"}
	}
	if now.Runtime.Host != nil && a.power.off(ctx, now.Runtime.Host.Value) {
		return &target.StoppedError{VM: vm.Name, Reason: "its host has no power"}
	}
	return nil
}

// date sets the time of a detected stop: since the agent's last answer.
func (a *agents) date(s *target.StoppedError, id string, noticed time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.At = noticed
	if heard, ok := a.heard[id]; ok {
		s.Uncertain = max(0, noticed.Sub(heard))
	}
}
