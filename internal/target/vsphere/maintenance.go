package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// maintenanceMax bounds how long DRS may take to move the VMs of others away.
const maintenanceMax = time.Hour

// maintainer takes hosts out of use.
type maintainer struct {
	site    *site
	allowed bool
}

// EnterMaintenance puts a host into maintenance mode. VMs of this program's runs are moved to other hosts first: DRS does
// not move them where SetBalancing forbids it. All other VMs are moved by DRS, or make the task wait.
func (m *maintainer) EnterMaintenance(ctx context.Context, nodeID string) error {
	return m.change(ctx, nodeID, true, func(s *survey, h *host) error {
		if err := m.evacuate(ctx, s, h); err != nil {
			return err
		}
		_, err := m.site.vc.Run(ctx, vcenter.Task{
			Limit: maintenanceMax, Done: func(ctx context.Context) bool { return m.is(ctx, h, true) },
			Start: func(ctx context.Context) (types.ManagedObjectReference, error) {
				res, err := methods.EnterMaintenanceMode_Task(ctx, m.site.vc.Client, &types.EnterMaintenanceMode_Task{
					This: h.ref, EvacuatePoweredOffVms: types.NewBool(false),
				})
				if err != nil {
					return types.ManagedObjectReference{}, err
				}
				return res.Returnval, nil
			},
		})
		return err
	})
}

// ExitMaintenance makes a host usable again.
func (m *maintainer) ExitMaintenance(ctx context.Context, nodeID string) error {
	return m.change(ctx, nodeID, false, func(_ *survey, h *host) error {
		_, err := m.site.vc.Run(ctx, vcenter.Task{
			Limit: vcenter.QuickMax, Done: func(ctx context.Context) bool { return m.is(ctx, h, false) },
			Start: func(ctx context.Context) (types.ManagedObjectReference, error) {
				res, err := methods.ExitMaintenanceMode_Task(ctx, m.site.vc.Client, &types.ExitMaintenanceMode_Task{This: h.ref})
				if err != nil {
					return types.ManagedObjectReference{}, err
				}
				return res.Returnval, nil
			},
		})
		return err
	})
}

// change acts on a host that is not yet as it should be.
func (m *maintainer) change(ctx context.Context, nodeID string, to bool, act func(s *survey, h *host) error) error {
	s, err := m.site.survey(ctx)
	if err != nil {
		return err
	}
	h, err := pick(s.hosts, nodeID)
	switch {
	case err != nil:
		return err
	case !m.allowed:
		return target.MaintenanceForbidden(nodeID)
	case h.maintenance == to:
		return nil
	}
	return m.site.vc.Explain(fmt.Sprintf("change the maintenance mode of host %q", h.name), act(s, h))
}

func (m *maintainer) is(ctx context.Context, h *host, maintenance bool) bool {
	var now mo.HostSystem
	err := m.site.vc.Collector().RetrieveOne(ctx, h.ref, []string{"runtime.inMaintenanceMode"}, &now)
	return err == nil && now.Runtime.InMaintenanceMode == maintenance
}

// evacuate moves the running VMs of this program's runs to the other hosts in turn.
func (m *maintainer) evacuate(ctx context.Context, s *survey, from *host) error {
	var ours []*vmInfo
	for _, one := range s.vms {
		if one.host == from && one.state == types.VirtualMachinePowerStatePoweredOn && m.site.runs.has(one.owner.Mark) {
			ours = append(ours, one)
		}
	}
	var others []*host
	for _, h := range s.hosts {
		if h != from && h.usable() == nil && h.sees(m.site.datastore) == nil {
			others = append(others, h)
		}
	}
	if len(ours) > 0 && len(others) == 0 {
		return &diag.Error{Code: "vsphere-nowhere", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("no other host can take the VMs of host %q", from.name)}
	}
	slices.SortFunc(ours, func(a, b *vmInfo) int { return strings.Compare(a.id, b.id) })
	slices.SortFunc(others, func(a, b *host) int { return cmp.Compare(a.name, b.name) })
	return target.Each(ctx, len(ours), func(i int) error {
		to := others[i%len(others)]
		return m.site.vms().Move(ctx, ours[i].ref, to.ref, m.site.pool.ref)
	})
}
