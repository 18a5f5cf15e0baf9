package vsphere

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// SetHA sets whether HA restarts the VMs, by an override of the cluster's setting. Enabled: as the cluster does.
func (o *operations) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := o.site.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set restart of VMs: %w", err)
	}
	return o.site.override(ctx, list, func(s *types.ClusterConfigSpecEx, now overrides, ref types.ManagedObjectReference) {
		switch {
		case enabled && now.ha[ref]:
			s.DasVmConfigSpec = append(s.DasVmConfigSpec, types.ClusterDasVmConfigSpec{ArrayUpdateSpec: removed(ref)})
		case !enabled:
			s.DasVmConfigSpec = append(s.DasVmConfigSpec, types.ClusterDasVmConfigSpec{
				ArrayUpdateSpec: put(now.ha[ref]),
				Info: &types.ClusterDasVmConfigInfo{Key: ref, DasSettings: &types.ClusterDasVmSettings{
					RestartPriority: string(types.ClusterDasVmSettingsRestartPriorityDisabled),
				}},
			})
		}
	})
}

// SetBalancing sets whether DRS may move the VMs, by an override of the cluster's setting. Enabled: as the cluster does.
func (o *operations) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := o.site.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set balancing of VMs: %w", err)
	}
	return o.site.override(ctx, list, func(s *types.ClusterConfigSpecEx, now overrides, ref types.ManagedObjectReference) {
		switch {
		case enabled && now.drs[ref]:
			s.DrsVmConfigSpec = append(s.DrsVmConfigSpec, types.ClusterDrsVmConfigSpec{ArrayUpdateSpec: removed(ref)})
		case !enabled:
			s.DrsVmConfigSpec = append(s.DrsVmConfigSpec, types.ClusterDrsVmConfigSpec{
				ArrayUpdateSpec: put(now.drs[ref]),
				Info:            &types.ClusterDrsVmConfigInfo{Key: ref, Enabled: types.NewBool(false)},
			})
		}
	})
}

func put(exists bool) types.ArrayUpdateSpec {
	if exists {
		return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit}
	}
	return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}
}

func removed(ref types.ManagedObjectReference) types.ArrayUpdateSpec {
	return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: ref}
}

// overrides are the VMs that have settings of their own in the cluster.
type overrides struct {
	ha, drs map[types.ManagedObjectReference]bool
}

func (t *site) overrides(ctx context.Context) (overrides, error) {
	now := overrides{map[types.ManagedObjectReference]bool{}, map[types.ManagedObjectReference]bool{}}
	config, err := t.configuration(ctx)
	if err != nil {
		return now, err
	}
	for _, one := range config.DasVmConfig {
		now.ha[one.Key] = true
	}
	for _, one := range config.DrsVmConfig {
		now.drs[one.Key] = true
	}
	return now, nil
}

func (t *site) configuration(ctx context.Context) (*types.ClusterConfigInfoEx, error) {
	var c mo.ClusterComputeResource
	if err := t.vc.Collector().RetrieveOne(ctx, t.cluster.ref, []string{"configurationEx"}, &c); err != nil {
		return nil, t.vc.Explain(fmt.Sprintf("read the settings of cluster %q", t.cluster.name), err)
	}
	config, ok := c.ConfigurationEx.(*types.ClusterConfigInfoEx)
	if !ok {
		return &types.ClusterConfigInfoEx{}, nil
	}
	return config, nil
}

// override changes settings of VMs in the cluster, all in one task. One call of this program at a time changes them: the
// result depends on what is there before.
func (t *site) override(
	ctx context.Context, list []*vmInfo, change func(s *types.ClusterConfigSpecEx, now overrides, ref types.ManagedObjectReference),
) error {
	t.overriding.Lock()
	defer t.overriding.Unlock()
	now, err := t.overrides(ctx)
	if err != nil {
		return err
	}
	var spec types.ClusterConfigSpecEx
	for _, one := range list {
		if one != nil {
			change(&spec, now, one.ref)
		}
	}
	if len(spec.DasVmConfigSpec) == 0 && len(spec.DrsVmConfigSpec) == 0 {
		return nil
	}
	_, err = t.vc.Run(ctx, vcenter.Task{
		Limit: vcenter.QuickMax,
		Start: func(ctx context.Context) (types.ManagedObjectReference, error) {
			res, err := methods.ReconfigureComputeResource_Task(ctx, t.vc.Client, &types.ReconfigureComputeResource_Task{
				This: t.cluster.ref, Spec: &spec, Modify: true,
			})
			if err != nil {
				return types.ManagedObjectReference{}, err
			}
			return res.Returnval, nil
		},
	})
	return t.vc.Explain(fmt.Sprintf("change settings of VMs in cluster %q", t.cluster.name), err)
}

// forget removes the settings of VMs in the cluster that SetHA and SetBalancing made. vCenter does that with the VM, but
// not every version.
func (t *site) forget(ctx context.Context, list []*vmInfo) error {
	return t.override(ctx, list, func(s *types.ClusterConfigSpecEx, now overrides, ref types.ManagedObjectReference) {
		if now.ha[ref] {
			s.DasVmConfigSpec = append(s.DasVmConfigSpec, types.ClusterDasVmConfigSpec{ArrayUpdateSpec: removed(ref)})
		}
		if now.drs[ref] {
			s.DrsVmConfigSpec = append(s.DrsVmConfigSpec, types.ClusterDrsVmConfigSpec{ArrayUpdateSpec: removed(ref)})
		}
	})
}
