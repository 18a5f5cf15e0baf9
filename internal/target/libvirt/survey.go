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
)

// survey is what all nodes hold at one moment. Every method that acts begins with one, and acts on what it shows:
// libvirt is the truth, and what a caller believes may be old.
type survey struct {
	vms  map[string]*seen // by identity; of all our controllers and runs
	down map[string]error // why a node did not answer, by its id
}

// seen is one VM.
type seen struct {
	id     string
	mark   string
	record record
	at     []presence // more than one only while it moves, or after a migration was cut off
}

// presence is a VM on a node.
type presence struct {
	node *node
	sight
}

// main is where the VM lives: where it has power, or else where it was seen first.
func (s *seen) main() presence {
	for _, p := range s.at {
		if p.active() {
			return p
		}
	}
	return s.at[0]
}

func (s *seen) power() target.PowerState {
	if s.main().active() {
		return target.PowerOn
	}
	return target.PowerOff
}

// vm is the VM as a value, on the node where it is now.
func (s *seen) vm() target.VM {
	vm := s.record.vm()
	vm.NodeID, vm.Power = s.main().node.id, s.power()
	return vm
}

// survey asks all nodes at once. Nodes that do not answer are noted, and are no error yet: what is asked for may be
// elsewhere.
func (t *Target) survey(ctx context.Context) (*survey, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	found, errs := make([][]sight, len(t.nodes)), make([]error, len(t.nodes))
	var all sync.WaitGroup
	for i, n := range t.nodes {
		all.Go(func() { found[i], errs[i] = n.sights(ctx) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s := &survey{vms: map[string]*seen{}, down: map[string]error{}}
	for i, n := range t.nodes {
		if errs[i] != nil {
			s.down[n.id] = errs[i]
			continue
		}
		for _, one := range found[i] {
			s.add(n, one)
		}
	}
	return s, nil
}

func (s *survey) add(n *node, one sight) {
	mark := one.mark()
	if mark == "" {
		return
	}
	known := s.vms[one.UUID]
	if known == nil {
		known = &seen{id: one.UUID, mark: mark, record: one.record()}
		s.vms[one.UUID] = known
	}
	known.at = append(known.at, presence{n, one})
}

// owned returns the VMs with that mark, in the order of their names.
func (s *survey) owned(mark string) []*seen {
	var list []*seen
	for _, one := range s.vms {
		if one.mark == mark {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *seen) int {
		return cmp.Or(strings.Compare(a.record.VM.Name, b.record.VM.Name), strings.Compare(a.id, b.id))
	})
	return list
}

var errGone = errors.New("it does not exist")

// find returns the VM when it carries the tag. errGone says that no node has it; another error that a node on which it
// may be did not answer, or that it is somebody else's.
func (s *survey) find(tag target.Tag, vm target.VM) (*seen, error) {
	one := s.vms[vm.ID]
	switch {
	case one != nil && one.mark != tag.Mark():
		return nil, target.Foreign(fmt.Sprintf("vm %q", vm.Name))
	case one != nil:
		return one, nil
	case !idText.MatchString(vm.ID):
		return nil, errGone
	}
	if err := s.unsure(); err != nil {
		return nil, err
	}
	return nil, errGone
}

// unsure is the error for a survey that did not see everything.
func (s *survey) unsure() error {
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
func (s *survey) resolve(tag target.Tag, vms []target.VM, orGone bool) ([]*seen, error) {
	list := make([]*seen, len(vms))
	for i, vm := range vms {
		one, err := s.find(tag, vm)
		if err != nil && (!orGone || !errors.Is(err, errGone)) {
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, err)
		}
		list[i] = one
	}
	return list, nil
}

// layer is the volume that a disk of a VM writes to now.
type layer struct {
	device string // "sdb"
	volume string // name
	format string
}

// layers lists the disks of a VM that snapshots and clones are about: those on volumes of its own but the seed.
func (p presence) layers() []layer {
	var all []layer
	for _, d := range p.Disks {
		name := path.Base(d.Source.File)
		o, ok := parseVolumeName(name)
		if ok && o.id == p.UUID && o.role != "seed" {
			all = append(all, layer{device: d.Target.Dev, volume: name, format: d.Driver.Type})
		}
	}
	return all
}
