package nutanix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// Others lists the VMs of the cluster without the tag. Volume groups are not listed: runs neither make nor remove any.
func (c *cluster) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), c.usable(ctx)); err != nil {
		return nil, err
	}
	nodes, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	vms, err := c.ahv.VMs(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	var all []target.Other
	for _, v := range vms {
		other := target.Other{Kind: target.OtherVM, Name: v.Name, Why: target.WhyUnmarked}
		if n := byHost(nodes, v.HostID()); n != nil {
			other.NodeID = n.id
		}
		if one := infoOf(v); one != nil {
			if one.ownedBy(tag.Mark()) {
				continue
			}
			other.Why, other.NodeID = target.WhyAnother, cmp.Or(other.NodeID, one.record.Node)
		}
		all = append(all, other)
	}
	slices.SortStableFunc(all, func(a, b target.Other) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
