package vsphere

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/meter"
)

// metered lists what the meter reads.
type metered struct{ site *site }

// MeteredHosts lists the hosts that answer.
func (m metered) MeteredHosts(ctx context.Context) ([]types.ManagedObjectReference, error) {
	hosts, err := m.site.hosts(ctx)
	var refs []types.ManagedObjectReference
	for _, h := range hosts {
		if h.answers() == nil {
			refs = append(refs, h.ref)
		}
	}
	slices.SortFunc(refs, func(a, b types.ManagedObjectReference) int { return strings.Compare(a.Value, b.Value) })
	return refs, err
}

// MeteredVMs lists the VMs with the tag that are on.
func (m metered) MeteredVMs(ctx context.Context, tag target.Tag) ([]meter.Machine, error) {
	s, err := m.site.survey(ctx)
	if err != nil {
		return nil, err
	}
	var all []meter.Machine
	for _, one := range s.owned(tag.Mark()) {
		if one.power() == target.PowerOn {
			all = append(all, meter.Machine{Ref: one.ref, VM: one.vm(), VCPUs: one.owner.Record.VCPUs})
		}
	}
	return all, nil
}
