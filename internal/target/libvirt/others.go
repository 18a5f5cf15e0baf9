package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
)

// Others lists the domains of all nodes, and the volumes in the pools of VMs, without the tag.
func (c *cluster) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), c.usable(ctx)); err != nil {
		return nil, err
	}
	mark := tag.Mark()
	found, keys := make([][]target.Other, len(c.nodes)), make([]string, len(c.nodes))
	volumes := make([][]target.Other, len(c.nodes))
	err := target.Each(ctx, len(c.nodes), func(i int) error {
		n := c.nodes[i]
		domains, err := n.domains.All(ctx)
		for _, d := range domains {
			if why := target.WhySkipped(d.Mark(), mark); why != "" {
				found[i] = append(found[i], target.Other{Kind: target.OtherVM, Name: d.Name, NodeID: n.ID, Why: why})
			}
		}
		if err != nil {
			return err
		}
		p, err := n.store.Pool(ctx)
		if err != nil {
			return err
		}
		names, err := p.Volumes(ctx)
		if err != nil {
			return fmt.Errorf("list volumes: %w", err)
		}
		keys[i] = p.Storage()
		for _, name := range names {
			o, _ := storage.ParseVolumeName(name)
			if why := target.WhySkipped(o.Mark, mark); why != "" {
				volumes[i] = append(volumes[i], target.Other{Kind: target.OtherVolume, Name: name, Why: why})
			}
		}
		return nil
	})
	all := slices.Concat(found...)
	for i := range volumes {
		if !slices.Contains(keys[:i], keys[i]) { // what nodes share is listed once
			all = append(all, volumes[i]...)
		}
	}
	slices.SortStableFunc(all, func(a, b target.Other) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all, err
}
