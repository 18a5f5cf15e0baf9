package nutanix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// survey is the VMs of Bragg on the cluster, of all runs, at one moment. Every method that acts begins with one and acts on its
// result: the caller's values may be old.
type survey struct {
	nodes []*node
	vms   map[string]*info // by id
}

func (c *cluster) survey(ctx context.Context) (*survey, error) {
	nodes, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	all, err := c.ahv.VMs(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	s := &survey{nodes: nodes, vms: map[string]*info{}}
	for _, v := range all {
		if one := infoOf(v); one != nil {
			s.vms[v.ExtID] = one
		}
	}
	c.cutOff(ctx, s)
	return s, nil
}

// cutOff takes VMs for off that were on nodes whose power this program has cut: Prism notices it after a while.
func (c *cluster) cutOff(ctx context.Context, s *survey) {
	if c.bmcs == nil {
		return
	}
	for _, n := range s.nodes {
		if n.config.BMC == nil || !c.bmcs.HasCutPower(ctx, n.id) {
			continue
		}
		for _, one := range s.vms {
			if one.HostID() == n.host.ExtID {
				one.Power, one.Host = ahv.Off, nil
			}
		}
	}
}

// owned returns the VMs with that mark, in the order of their names.
func (s *survey) owned(mark string) []*info {
	var list []*info
	for _, one := range s.vms {
		if one.ownedBy(mark) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *info) int {
		return cmp.Or(strings.Compare(a.name(), b.name()), strings.Compare(a.ExtID, b.ExtID))
	})
	return list
}

var errGone = errors.New("it does not exist")

// resolve returns the VMs, all of which must carry the tag. With orGone, those that do not exist are nil, else they are an error.
func (s *survey) resolve(tag target.Tag, vms []target.VM, orGone bool) ([]*info, error) {
	list := make([]*info, len(vms))
	for i, vm := range vms {
		one := s.vms[vm.ID]
		switch {
		case one != nil && !one.ownedBy(tag.Mark()):
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, target.Foreign(fmt.Sprintf("vm %q", vm.Name)))
		case one == nil && !orGone:
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, errGone)
		}
		list[i] = one
	}
	return list, nil
}

// find surveys the cluster and returns the VMs as they are now: see resolve.
func (c *cluster) find(ctx context.Context, tag target.Tag, vms []target.VM, orGone bool) (*survey, []*info, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	s, err := c.survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := s.resolve(tag, vms, orGone)
	return s, list, err
}

// onEach is target.Each for VMs, which errors name. A nil VM is skipped.
func onEach(ctx context.Context, action string, vms []*info, do func(one *info) error) error {
	return target.Each(ctx, len(vms), func(i int) error {
		if vms[i] == nil {
			return nil
		}
		name := vms[i].name()
		ended := target.Observe(ctx, name)
		err := do(vms[i])
		ended(err)
		if err != nil {
			return fmt.Errorf("%s vm %q: %w", action, name, err)
		}
		return nil
	})
}
