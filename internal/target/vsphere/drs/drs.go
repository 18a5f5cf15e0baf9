// Package drs has what a cluster does with single VMs: overrides of its settings of DRS and HA.
//
//	SetHA, SetBalancing, Like, Forget ──▶ overrides as they are ──▶ one task with the difference
//
// A VM that DRS may not move has an override that excludes it from DRS, also from initial placement: it stays on the host where it was
// created or moved to. An override belongs to its VM and is found and removed with it, so that no object of the cluster needs a mark of its
// own. Decision 0022 has the reasons against rules.
package drs

import (
	"context"
	"fmt"
	"sync"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

type object = types.ManagedObjectReference

// Cluster is one cluster. Its methods may be called concurrently; one call at a time changes overrides, because the result depends on what
// is there before.
type Cluster struct {
	VC   *vcenter.Client
	Ref  types.ManagedObjectReference
	Name string
	mu   sync.Mutex
}

// Config reads the settings of the cluster.
func (c *Cluster) Config(ctx context.Context) (*types.ClusterConfigInfoEx, error) {
	var now mo.ClusterComputeResource
	if err := c.VC.Collector().RetrieveOne(ctx, c.Ref, []string{"configurationEx"}, &now); err != nil {
		return nil, c.VC.Explain(fmt.Sprintf("read the settings of cluster %q", c.Name), err)
	}
	config, ok := now.ConfigurationEx.(*types.ClusterConfigInfoEx)
	if !ok {
		return &types.ClusterConfigInfoEx{}, nil
	}
	return config, nil
}

// SetHA sets whether HA restarts VMs. Enabled: as the cluster does.
func (c *Cluster) SetHA(ctx context.Context, vms []types.ManagedObjectReference, enabled bool) error {
	return c.change(ctx, vms, func(d *difference, vm object) error {
		if enabled {
			d.removeHA(vm)
			return nil
		}
		d.setHA(types.ClusterDasVmConfigInfo{Key: vm, DasSettings: &types.ClusterDasVmSettings{
			RestartPriority: string(types.ClusterDasVmSettingsRestartPriorityDisabled),
		}})
		return nil
	})
}

// SetBalancing sets whether DRS moves VMs. Enabled: as the cluster does. A cluster that ignores overrides cannot exclude VMs.
func (c *Cluster) SetBalancing(ctx context.Context, vms []types.ManagedObjectReference, enabled bool) error {
	return c.change(ctx, vms, func(d *difference, vm object) error {
		switch {
		case enabled:
			d.removeDRS(vm)
		case ignoring(d.config):
			return &diag.Error{
				Code: "vsphere-drs-overrides", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("exclude VMs from DRS: cluster %q ignores settings of single VMs, so that DRS moves all of them", c.Name),
				Hint:    "enable individual VM automation levels in the DRS settings of the cluster, or let DRS move the VMs with disable_drs: false",
			}
		default:
			d.setDRS(types.ClusterDrsVmConfigInfo{Key: vm, Enabled: types.NewBool(false)})
		}
		return nil
	})
}

// Like gives VMs the overrides of another one.
func (c *Cluster) Like(ctx context.Context, source types.ManagedObjectReference, vms []types.ManagedObjectReference) error {
	return c.change(ctx, vms, func(d *difference, vm object) error {
		if of, ok := d.ha[source]; ok {
			of.Key = vm
			d.setHA(of)
		}
		if of, ok := d.drs[source]; ok {
			of.Key = vm
			d.setDRS(of)
		}
		return nil
	})
}

// Forget removes the overrides of VMs. vCenter does that with the VM, but not every version.
func (c *Cluster) Forget(ctx context.Context, vms []types.ManagedObjectReference) error {
	return c.change(ctx, vms, func(d *difference, vm object) error {
		d.removeHA(vm)
		d.removeDRS(vm)
		return nil
	})
}

// change collects changes of VMs and makes them in one task.
func (c *Cluster) change(ctx context.Context, vms []object, add func(d *difference, vm object) error) error {
	if len(vms) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	config, err := c.Config(ctx)
	if err != nil {
		return err
	}
	d := compare(config)
	for _, vm := range vms {
		if err := add(d, vm); err != nil {
			return err
		}
	}
	if len(d.spec.DasVmConfigSpec) == 0 && len(d.spec.DrsVmConfigSpec) == 0 {
		return nil
	}
	_, err = c.VC.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.ReconfigureComputeResource_Task(ctx, c.VC.Client, &types.ReconfigureComputeResource_Task{
			This: c.Ref, Spec: &d.spec, Modify: true,
		})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	return c.VC.Explain(fmt.Sprintf("change settings of VMs in cluster %q", c.Name), err)
}

// difference is what changes in a cluster.
type difference struct {
	config *types.ClusterConfigInfoEx
	ha     map[object]types.ClusterDasVmConfigInfo // as it is
	drs    map[object]types.ClusterDrsVmConfigInfo
	spec   types.ClusterConfigSpecEx
}

func compare(config *types.ClusterConfigInfoEx) *difference {
	d := &difference{config: config, ha: map[object]types.ClusterDasVmConfigInfo{}, drs: map[object]types.ClusterDrsVmConfigInfo{}}
	for _, one := range config.DasVmConfig {
		d.ha[one.Key] = one
	}
	for _, one := range config.DrsVmConfig {
		d.drs[one.Key] = one
	}
	return d
}

func (d *difference) setHA(of types.ClusterDasVmConfigInfo) {
	_, exists := d.ha[of.Key]
	d.spec.DasVmConfigSpec = append(d.spec.DasVmConfigSpec, types.ClusterDasVmConfigSpec{ArrayUpdateSpec: put(exists), Info: &of})
}

func (d *difference) setDRS(of types.ClusterDrsVmConfigInfo) {
	_, exists := d.drs[of.Key]
	d.spec.DrsVmConfigSpec = append(d.spec.DrsVmConfigSpec, types.ClusterDrsVmConfigSpec{ArrayUpdateSpec: put(exists), Info: &of})
}

func (d *difference) removeHA(vm object) {
	if _, exists := d.ha[vm]; exists {
		d.spec.DasVmConfigSpec = append(d.spec.DasVmConfigSpec, types.ClusterDasVmConfigSpec{ArrayUpdateSpec: removed(vm)})
	}
}

func (d *difference) removeDRS(vm object) {
	if _, exists := d.drs[vm]; exists {
		d.spec.DrsVmConfigSpec = append(d.spec.DrsVmConfigSpec, types.ClusterDrsVmConfigSpec{ArrayUpdateSpec: removed(vm)})
	}
}

func put(exists bool) types.ArrayUpdateSpec {
	if exists {
		return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit}
	}
	return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}
}

func removed(vm object) types.ArrayUpdateSpec {
	return types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: vm}
}
