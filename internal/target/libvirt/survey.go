package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// survey is the domains of all nodes at one moment. Every method that acts begins with one and acts on its result: libvirt is the
// source of truth, and the caller's values may be old.
type survey struct {
	vms  map[string]*vmInfo // by identity; of all our controllers and runs
	down map[string]error   // why a node did not answer, by its id
}

// vmInfo is one VM.
type vmInfo struct {
	id     string
	mark   string
	record domain.Record
	at     []presence // more than one only during a migration, or after one was interrupted
}

// presence is a VM on a node.
type presence struct {
	node *node
	domain.Info
}

// home is where the VM has power, or else where it was found first.
func (v *vmInfo) home() presence {
	for _, p := range v.at {
		if p.Active() {
			return p
		}
	}
	return v.at[0]
}

func (v *vmInfo) power() target.PowerState {
	if v.home().Active() {
		return target.PowerOn
	}
	return target.PowerOff
}

// vm is the VM as a value, on the node where it is now.
func (v *vmInfo) vm() target.VM {
	vm := v.record.VM.Copy()
	vm.NodeID, vm.Power = v.home().node.ID, v.power()
	return vm
}

// off cuts the power of a VM on every node where it has some.
func (v *vmInfo) off(ctx context.Context) error {
	var errs []error
	for _, p := range v.at {
		if p.Active() {
			errs = append(errs, p.node.domains.Destroy(ctx, v.id))
		}
	}
	return errors.Join(errs...)
}

// survey asks all nodes at once. A node that does not answer is noted, which is not yet an error: the VM may be elsewhere.
func (c *cluster) survey(ctx context.Context) (*survey, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	found, errs := make([][]domain.Info, len(c.nodes)), make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		all.Go(func() { found[i], errs[i] = n.domains.All(ctx) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s := &survey{vms: map[string]*vmInfo{}, down: map[string]error{}}
	for i, n := range c.nodes {
		if errs[i] != nil {
			s.down[n.ID] = errs[i]
			continue
		}
		for _, one := range found[i] {
			s.add(n, one)
		}
	}
	return s, nil
}

func (s *survey) add(n *node, one domain.Info) {
	mark := one.Mark()
	if mark == "" {
		return
	}
	known := s.vms[one.UUID]
	if known == nil {
		known = &vmInfo{id: one.UUID, mark: mark, record: one.Record()}
		s.vms[one.UUID] = known
	}
	known.at = append(known.at, presence{n, one})
}

// owned returns the VMs with that mark, in the order of their names.
func (s *survey) owned(mark string) []*vmInfo {
	var list []*vmInfo
	for _, one := range s.vms {
		if one.mark == mark {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *vmInfo) int {
		return cmp.Or(strings.Compare(a.record.VM.Name, b.record.VM.Name), strings.Compare(a.id, b.id))
	})
	return list
}

var errGone = errors.New("it does not exist")

// one returns the VM when it carries the tag. errGone says that no node has it; another error that a node on which it
// may be did not answer, or that another run owns it.
func (s *survey) one(tag target.Tag, vm target.VM) (*vmInfo, error) {
	one := s.vms[vm.ID]
	switch {
	case one != nil && one.mark != tag.Mark():
		return nil, target.Foreign(fmt.Sprintf("vm %q", vm.Name))
	case one != nil:
		return one, nil
	case !virsh.IsUUID(vm.ID):
		return nil, errGone
	}
	return nil, cmp.Or(s.incomplete(), errGone)
}

// incomplete is the error of a survey in which nodes did not answer.
func (s *survey) incomplete() error {
	if len(s.down) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.down))
	return &diag.Error{
		Code: "libvirt-node-silent", Exit: diag.ExitUnavailable,
		Message: "nodes do not answer: " + strings.Join(names, ", "), Err: s.down[names[0]],
	}
}

// resolve returns the VMs, all of which must carry the tag. With orGone, those that do not exist are nil, else they are
// an error.
func (s *survey) resolve(tag target.Tag, vms []target.VM, orGone bool) ([]*vmInfo, error) {
	list := make([]*vmInfo, len(vms))
	for i, vm := range vms {
		one, err := s.one(tag, vm)
		if err != nil && (!orGone || !errors.Is(err, errGone)) {
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, err)
		}
		list[i] = one
	}
	return list, nil
}

// find surveys the nodes and returns the VMs as they are now: see resolve.
func (c *cluster) find(ctx context.Context, tag target.Tag, vms []target.VM, orGone bool) ([]*vmInfo, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	s, err := c.survey(ctx)
	if err != nil {
		return nil, err
	}
	return s.resolve(tag, vms, orGone)
}

// layer is the volume that a disk of a VM writes to now.
type layer struct {
	device string // "sdb"
	volume string // name
	format string
}

// layers lists the disks of a VM that snapshots and clones include: those on volumes of its own, without the seed.
func (p presence) layers() []layer {
	var all []layer
	for _, d := range p.Disks {
		name := path.Base(d.Source.File)
		o, ok := storage.ParseVolumeName(name)
		if ok && o.ID == p.UUID && o.Role != "seed" {
			all = append(all, layer{device: d.Target.Dev, volume: name, format: d.Driver.Type})
		}
	}
	return all
}
