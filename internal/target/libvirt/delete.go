package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// Owned lists the VMs that carry the tag, with their present node and power. A VM of which only volumes are left, or that
// is on a node that does not answer, is listed with what is known of it.
func (t *Target) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	t.remark(tag)
	// Volumes first: whatever has a volume had a domain before, and the survey shows it.
	volumes, err := t.volumes(ctx, tag.Mark())
	if err != nil {
		return nil, err
	}
	s, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	vms := []target.VM{}
	for _, one := range s.owned(tag.Mark()) {
		vms = append(vms, one.vm())
	}
	vms = append(vms, t.unseen(ctx, s, tag.Mark())...)
	for _, id := range t.orphans(s, tag.Mark(), volumes) {
		vms = append(vms, target.VM{ID: id, Name: id, Disks: []target.Disk{}, Power: target.PowerOff})
	}
	slices.SortStableFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return vms, nil
}

// unseen returns the VMs that were last on a node which does not answer and that no other node has.
func (t *Target) unseen(ctx context.Context, s *survey, mark string) []target.VM {
	var vms []target.VM
	power := map[string]target.PowerState{} // by node
	for _, r := range t.memory.all(mark) {
		if s.down[r.Node] == nil || s.vms[r.Record.VM.ID] != nil {
			continue
		}
		vm := r.Record.vm()
		if power[r.Node] == "" {
			power[r.Node] = target.PowerUnknown
			if t.withoutPower(ctx, r.Node) {
				power[r.Node] = target.PowerOff
			}
		}
		vm.NodeID, vm.Power = r.Node, power[r.Node]
		vms = append(vms, vm)
	}
	return vms
}

// found is a volume where it lies.
type found struct {
	node *node
	pool pool
	volumeOwner
	name string
}

// volumes lists all volumes with that mark on the nodes that answer; what several nodes share is listed once.
func (t *Target) volumes(ctx context.Context, mark string) ([]found, error) {
	all := make([][]found, len(t.nodes))
	keys := make([]string, len(t.nodes))
	err := target.Each(ctx, len(t.nodes), func(i int) error {
		n := t.nodes[i]
		p, err := n.readPool(ctx, n.pool)
		if isLost(err) {
			return nil // the survey notes it
		}
		if err != nil {
			return err
		}
		names, err := n.listVolumes(ctx, p)
		if isLost(err) {
			return nil
		}
		if err != nil {
			return err
		}
		keys[i] = t.storage(n, p)
		for _, name := range names {
			if o, ok := parseVolumeName(name); ok && o.mark == mark {
				all[i] = append(all[i], found{n, p, o, name})
			}
		}
		return nil
	})
	var list []found
	for i := range all {
		if !slices.Contains(keys[:i], keys[i]) {
			list = append(list, all[i]...)
		}
	}
	return list, err
}

// orphans returns the identities under which volumes are left that no VM has. While a node does not answer there may be
// VMs that we do not see, and nothing counts as left.
func (t *Target) orphans(s *survey, mark string, volumes []found) []string {
	if len(s.down) > 0 {
		return nil
	}
	needed := t.needed(s, mark, nil)
	var left []string
	for _, v := range volumes {
		if s.vms[v.id] == nil && !needed[v.name] && !slices.Contains(left, v.id) {
			left = append(left, v.id)
		}
	}
	return left
}

// needed returns the volumes that VMs with that mark read and that are not their own, but for VMs in without.
func (t *Target) needed(s *survey, mark string, without []string) map[string]bool {
	needed := map[string]bool{}
	add := func(r record) {
		if slices.Contains(without, r.VM.ID) {
			return
		}
		for _, name := range r.Bases {
			needed[name] = true
		}
	}
	for _, one := range s.owned(mark) {
		add(one.record)
	}
	for _, r := range t.memory.all(mark) {
		if s.down[r.Node] != nil {
			add(r.Record)
		}
	}
	return needed
}

// Delete powers off and removes VMs with all their volumes. What is gone already is no error. Volumes that clones of a
// VM read stay until the last of these is deleted.
func (t *Target) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := tag.Check(); err != nil {
		return err
	}
	var ids []string
	for _, vm := range vms {
		if idText.MatchString(vm.ID) && !slices.Contains(ids, vm.ID) {
			ids = append(ids, vm.ID)
		}
	}
	slices.Sort(ids) // everybody locks in the same order
	for _, id := range ids {
		defer t.lock(id)()
	}
	if err := t.remove(ctx, tag, vms, ids); err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	return nil
}

// remove is Delete for a caller that holds the locks of the VMs; ids are theirs.
func (t *Target) remove(ctx context.Context, tag target.Tag, vms []target.VM, ids []string) error {
	s, err := t.survey(ctx)
	if err != nil {
		return err
	}
	list, err := s.resolve(tag, vms, true)
	if err != nil || len(ids) == 0 {
		return err
	}
	err = onEach(ctx, "power off", list, func(i int) error {
		t.hangUp(list[i].id)
		return list[i].off(ctx)
	})
	if err != nil {
		return err
	}
	if err := t.removeVolumes(ctx, tag.Mark(), ids); err != nil {
		return fmt.Errorf("delete volumes: %w", err)
	}
	err = onEach(ctx, "delete", list, func(i int) error {
		for _, p := range list[i].at {
			if err := p.node.undefine(ctx, list[i].id); err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range ids {
		if err == nil {
			err = t.memory.forget(id)
		}
	}
	return err
}

// removeVolumes removes the volumes of VMs that are about to go, and all with the mark that no VM has any more.
func (t *Target) removeVolumes(ctx context.Context, mark string, ids []string) error {
	volumes, err := t.volumes(ctx, mark) // before the survey, as in Owned
	if err != nil {
		return err
	}
	s, err := t.survey(ctx)
	if err != nil {
		return err
	}
	needed := t.needed(s, mark, ids)
	volumes = slices.DeleteFunc(volumes, func(v found) bool {
		ours := slices.Contains(ids, v.id) || len(s.down) == 0 && s.vms[v.id] == nil
		return needed[v.name] || !ours
	})
	if slices.ContainsFunc(volumes, found.image) {
		t.forgetBrought()
	}
	return target.Each(ctx, len(volumes), func(i int) error {
		return volumes[i].node.deleteVolume(ctx, volumes[i].pool, volumes[i].name)
	})
}

// off cuts the power of a VM wherever it has some.
func (s *seen) off(ctx context.Context) error {
	var errs []error
	for _, p := range s.at {
		if p.active() {
			errs = append(errs, p.node.destroy(ctx, s.id))
		}
	}
	return errors.Join(errs...)
}

func (n *node) destroy(ctx context.Context, id string) error {
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, nil, "destroy", "--domain="+id)
		return err
	}, nil)
	if isGone(err) || isStill(err) {
		return nil
	}
	return err
}

func (n *node) undefine(ctx context.Context, id string) error {
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, nil, "undefine", "--domain="+id)
		return err
	}, nil)
	if isGone(err) {
		return nil
	}
	return err
}
