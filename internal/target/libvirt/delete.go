package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// remover finds and removes VMs.
type remover struct {
	cluster   *cluster
	memory    *memory
	locks     *target.KeyLocks // by VM
	agents    *agents
	templates *templates
	power     *nodePower
}

// Owned lists the VMs with the tag, with their current node and power. A VM with volumes only, or on a node that does
// not answer, is listed with its known properties.
func (r *remover) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	if err := r.cluster.usable(ctx); err != nil {
		return nil, err
	}
	r.cluster.runs.add(tag)
	// Volumes first: a VM with a volume had a domain before, which the survey includes.
	volumes, err := r.volumes(ctx, tag.Mark())
	if err != nil {
		return nil, err
	}
	s, err := r.cluster.survey(ctx)
	if err != nil {
		return nil, err
	}
	vms := []target.VM{}
	for _, one := range s.owned(tag.Mark()) {
		vms = append(vms, one.vm())
	}
	vms = append(vms, r.unseen(ctx, s, tag.Mark())...)
	for _, id := range r.orphans(s, tag.Mark(), volumes) {
		vms = append(vms, target.VM{ID: id, Name: id, Disks: []target.Disk{}, Power: target.PowerOff})
	}
	slices.SortStableFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return vms, nil
}

// unseen returns the VMs that were last on a node that does not answer, and are on no other.
func (r *remover) unseen(ctx context.Context, s *survey, mark string) []target.VM {
	var vms []target.VM
	power := map[string]target.PowerState{} // by node
	for _, known := range r.memory.all(mark) {
		if s.down[known.Node] == nil || s.vms[known.Record.VM.ID] != nil {
			continue
		}
		if power[known.Node] == "" {
			power[known.Node] = target.PowerUnknown
			if r.power.off(ctx, known.Node) {
				power[known.Node] = target.PowerOff
			}
		}
		vm := known.Record.VM.Copy()
		vm.NodeID, vm.Power = known.Node, power[known.Node]
		vms = append(vms, vm)
	}
	return vms
}

// volume is a volume of Bragg in its pool.
type volume struct {
	pool *storage.Pool
	storage.Owner
	name string
}

// volumes lists all volumes with that mark on the nodes that answer; those that several nodes share are listed once.
func (r *remover) volumes(ctx context.Context, mark string) ([]volume, error) {
	nodes := r.cluster.nodes
	all, keys := make([][]volume, len(nodes)), make([]string, len(nodes))
	err := target.Each(ctx, len(nodes), func(i int) error {
		p, err := nodes[i].store.Pool(ctx)
		var names []string
		if err == nil {
			names, err = p.Volumes(ctx)
		}
		switch {
		case virsh.IsLost(err):
			return nil // the survey notes it
		case err != nil:
			return err
		}
		keys[i] = p.Storage()
		for _, name := range names {
			if o, ok := storage.ParseVolumeName(name); ok && o.Mark == mark {
				all[i] = append(all[i], volume{p, o, name})
			}
		}
		return nil
	})
	var list []volume
	for i := range all {
		if !slices.Contains(keys[:i], keys[i]) {
			list = append(list, all[i]...)
		}
	}
	return list, err
}

// orphans returns the identities of volumes without a VM. While a node does not answer there may be VMs that are not visible, and
// no volume counts as an orphan.
func (r *remover) orphans(s *survey, mark string, volumes []volume) []string {
	if len(s.down) > 0 {
		return nil
	}
	needed := r.needed(s, mark, nil)
	var left []string
	for _, v := range volumes {
		if s.vms[v.ID] == nil && !needed[v.name] && !slices.Contains(left, v.ID) {
			left = append(left, v.ID)
		}
	}
	return left
}

// needed returns the volumes of others that VMs with that mark read, except VMs in without.
func (r *remover) needed(s *survey, mark string, without []string) map[string]bool {
	needed := map[string]bool{}
	add := func(vm domain.Record) {
		if !slices.Contains(without, vm.VM.ID) {
			for _, name := range vm.Bases {
				needed[name] = true
			}
		}
	}
	for _, one := range s.owned(mark) {
		add(one.record)
	}
	for _, known := range r.memory.all(mark) {
		if s.down[known.Node] != nil {
			add(known.Record)
		}
	}
	return needed
}

// Delete powers off and removes VMs with all their existing volumes. Volumes that clones read remain until the last
// clone is deleted.
func (r *remover) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := tag.Check(); err != nil {
		return err
	}
	var ids []string
	for _, vm := range vms {
		if virsh.IsUUID(vm.ID) && !slices.Contains(ids, vm.ID) {
			ids = append(ids, vm.ID)
		}
	}
	slices.Sort(ids) // all calls lock in the same order
	for _, id := range ids {
		defer r.locks.Lock(id)()
	}
	if err := r.remove(ctx, tag, vms, ids); err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	return nil
}

// remove is Delete for a caller that holds the locks of the VMs; ids are theirs.
func (r *remover) remove(ctx context.Context, tag target.Tag, vms []target.VM, ids []string) error {
	s, err := r.cluster.survey(ctx)
	if err != nil {
		return err
	}
	list, err := s.resolve(tag, vms, true)
	if err != nil || len(ids) == 0 {
		return err
	}
	err = onEach(ctx, "power off", list, func(one *vmInfo) error {
		r.agents.hangUp(one.id)
		return one.off(ctx)
	})
	if err != nil {
		return err
	}
	if err := r.removeVolumes(ctx, tag.Mark(), ids); err != nil {
		return fmt.Errorf("delete volumes: %w", err)
	}
	err = onEach(ctx, "delete", list, func(one *vmInfo) error {
		for _, p := range one.at {
			if err := p.node.domains.Undefine(ctx, one.id); err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range ids {
		if err == nil {
			err = r.memory.forget(id)
		}
	}
	return err
}

// removeVolumes removes the volumes of VMs that are being deleted, and orphans with the mark.
func (r *remover) removeVolumes(ctx context.Context, mark string, ids []string) error {
	volumes, err := r.volumes(ctx, mark) // before the survey, as in Owned
	if err != nil {
		return err
	}
	s, err := r.cluster.survey(ctx)
	if err != nil {
		return err
	}
	needed := r.needed(s, mark, ids)
	volumes = slices.DeleteFunc(volumes, func(v volume) bool {
		ours := slices.Contains(ids, v.ID) || len(s.down) == 0 && s.vms[v.ID] == nil
		return needed[v.name] || !ours
	})
	if slices.ContainsFunc(volumes, func(v volume) bool { return v.Template() }) {
		r.templates.forget()
	}
	return target.Each(ctx, len(volumes), func(i int) error {
		return volumes[i].pool.Delete(ctx, volumes[i].name)
	})
}
