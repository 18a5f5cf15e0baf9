package vsphere

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
)

// remover finds and removes VMs.
type remover struct {
	site   *site
	locks  *target.KeyLocks // by VM
	agents *agents
	power  *nodePower
}

// Owned lists the VMs with the tag, with their current node and power. A VM that was never finished is listed with the
// name that vCenter has for it.
func (r *remover) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	if err := r.site.settle(ctx, tag); err != nil {
		return nil, err
	}
	s, err := r.site.survey(ctx)
	if err != nil {
		return nil, err
	}
	vms := []target.VM{}
	off := map[*host]bool{}
	for _, one := range s.owned(tag.Mark()) {
		vm := one.vm()
		if vm.Power == target.PowerUnknown && one.host != nil {
			if _, known := off[one.host]; !known {
				off[one.host] = r.power.off(ctx, one.host.ref.Value)
			}
			if off[one.host] { // its host has no power, so neither has the VM
				vm.Power = target.PowerOff
			}
		}
		vms = append(vms, vm)
	}
	return vms, nil
}

// Delete powers off and removes VMs with all their disks and snapshots. Disks that linked clones share remain until the
// last of them is deleted: vCenter keeps account of that.
func (r *remover) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := tag.Check(); err != nil {
		return err
	}
	if err := r.site.usable(ctx); err != nil {
		return err
	}
	if len(vms) == 0 {
		return nil
	}
	var ids []string
	for _, vm := range vms {
		ids = append(ids, vm.ID)
	}
	slices.Sort(ids) // all calls lock in the same order
	for _, id := range slices.Compact(ids) {
		defer r.locks.Lock(id)()
	}
	list, err := r.site.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	return r.remove(ctx, list)
}

// undo removes what a call made that failed.
func (r *remover) undo(ctx context.Context, tag target.Tag, plans []*blueprint) error {
	s, err := r.site.survey(ctx)
	if err != nil {
		return err
	}
	var list []*vmInfo
	for _, one := range s.owned(tag.Mark()) {
		for _, b := range plans {
			if one.id == b.record.VM.ID || one.owner.Stray && one.name == record.Name(tag.Mark(), b.record.VM.ID, b.spec.Name) {
				list = append(list, one)
			}
		}
	}
	return r.remove(ctx, list)
}

func (r *remover) remove(ctx context.Context, list []*vmInfo) error {
	err := r.site.onEach(ctx, "power off", list, func(one *vmInfo) error {
		r.agents.HangUp(one.id)
		return r.site.off(ctx, one)
	})
	if err == nil {
		err = r.site.drs.Forget(ctx, refs(list))
	}
	if err != nil {
		return err
	}
	return r.site.onEach(ctx, "delete", list, func(one *vmInfo) error { return r.site.vms().Destroy(ctx, one.ref) })
}

// Others lists the VMs of the cluster without the tag.
func (r *remover) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), r.site.usable(ctx)); err != nil {
		return nil, err
	}
	s, err := r.site.survey(ctx)
	if err != nil {
		return nil, err
	}
	var all []target.Other
	add := func(one *vmInfo, why string) {
		o := target.Other{Kind: target.OtherVM, Name: one.name, Why: why}
		if one.host != nil {
			o.NodeID = one.host.ref.Value
		}
		all = append(all, o)
	}
	for _, one := range s.vms {
		if !one.owner.Belongs(tag.Mark()) {
			add(one, target.WhyAnother)
		}
	}
	for _, one := range s.others {
		if !one.template && one.name != r.site.lease().VM() {
			add(one, target.WhyUnmarked)
		}
	}
	slices.SortFunc(all, func(a, b target.Other) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}
