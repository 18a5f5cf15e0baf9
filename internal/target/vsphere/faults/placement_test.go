package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
)

// cluster returns the settings of the simulated cluster.
func (r *rig) cluster() *types.ClusterConfigInfoEx {
	return r.Model.Map().Any("ClusterComputeResource").(*simulator.ClusterComputeResource).ConfigurationEx.(*types.ClusterConfigInfoEx)
}

// overrides lists the names of VMs that DRS does not move, and of those that HA does not restart.
func (r *rig) overrides() (drs, ha []string) {
	names := map[types.ManagedObjectReference]string{}
	for name, ref := range r.VMs() {
		names[ref] = name
	}
	for _, one := range r.cluster().DrsVmConfig {
		if one.Enabled != nil && !*one.Enabled {
			drs = append(drs, names[one.Key])
		}
	}
	for _, one := range r.cluster().DasVmConfig {
		ha = append(ha, names[one.Key])
	}
	return drs, ha
}

// facts returns the values of facts by name.
func facts(t *testing.T, v target.Target) map[string]string {
	t.Helper()
	inventory, err := v.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range inventory.Facts {
		all[f.Name] = f.Value
	}
	return all
}

// automatic makes DRS of the cluster fully automated, and excludes the VM of a user from it.
func (r *rig) automatic(t *testing.T) {
	t.Helper()
	c := object.NewClusterComputeResource(r.Client().Client, r.Model.Map().Any("ClusterComputeResource").Reference())
	task, err := c.Reconfigure(t.Context(), &types.ClusterConfigSpecEx{
		DrsConfig:       &types.ClusterDrsConfigInfo{Enabled: types.NewBool(true), DefaultVmBehavior: types.DrsBehaviorFullyAutomated},
		DrsVmConfigSpec: []types.ClusterDrsVmConfigSpec{{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}, Info: &types.ClusterDrsVmConfigInfo{Key: r.VMs()[vcsim.Foreign], Enabled: types.NewBool(false)}}},
	}, true)
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// VMs that a group gets later stay on their nodes as the others do. A controller that did not make the VMs removes their overrides with them,
// and none of another VM.
func TestPlacementWithDRS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.automatic(t)
	v := r.open(t)
	if got := facts(t, v)["placement of VMs"]; !strings.Contains(got, "exclude them from DRS") {
		t.Errorf("fact: %q", got)
	}
	all := specs(t.Context(), v, 4)
	vms, err := v.Create(t.Context(), r.tag, all[:2])
	if err != nil {
		t.Fatal(err)
	}
	p := v.(target.Placer)
	if err := errors.Join(p.SetHA(t.Context(), r.tag, vms, false), p.SetBalancing(t.Context(), r.tag, vms, false)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.(target.Cloner).CloneVM(t.Context(), r.tag, vms[0], all[2:], false); err != nil {
		t.Fatal(err)
	}
	if drs, ha := r.overrides(); len(drs) != 5 || len(ha) != 4 {
		t.Errorf("DRS does not move %q, HA does not restart %q", drs, ha)
	}
	next := r.open(t)
	owned, err := next.Owned(t.Context(), r.tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Delete(t.Context(), r.tag, owned); err != nil {
		t.Fatal(err)
	}
	if drs, ha := r.overrides(); !slices.Equal(drs, []string{vcsim.Foreign}) || len(ha) != 0 {
		t.Errorf("left: DRS does not move %q, HA does not restart %q", drs, ha)
	}
}

// Clones whose placement cannot be fixed do not stay behind.
func TestClonesThatCannotBePlaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	all := specs(t.Context(), v, 3)
	vms, err := v.Create(t.Context(), r.tag, all[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := v.(target.Placer).SetBalancing(t.Context(), r.tag, vms, false); err != nil {
		t.Fatal(err)
	}
	refused := 0
	r.Model.Map().Handler = func(_ *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if m.Name == "ReconfigureComputeResource_Task" && refused == 0 {
			refused++
			return nil, &types.NoPermission{PrivilegeId: "Host.Inventory.EditCluster"}
		}
		return nil, nil
	}
	_, err = v.(target.Cloner).CloneVM(t.Context(), r.tag, vms[0], all[1:], true)
	if err == nil || !strings.Contains(err.Error(), "Host.Inventory.EditCluster") {
		t.Errorf("got %v", err)
	}
	r.Model.Map().Handler = nil
	if left := r.left(); len(left) != 1 {
		t.Errorf("left: %q, want the source", left)
	}
}

// A cluster may ignore settings of single VMs: then nothing keeps DRS from moving them.
func TestClusterIgnoresOverrides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.automatic(t)
	r.cluster().DrsConfig.EnableVmBehaviorOverrides = types.NewBool(false)
	r.cluster().DpmConfigInfo = &types.ClusterDpmConfigInfo{Enabled: types.NewBool(true)}
	v := r.open(t)
	said := facts(t, v)
	if !strings.HasPrefix(said["placement of VMs"], "not fixed") || !strings.Contains(said["DPM of the cluster"], "standby") {
		t.Errorf("facts: %v", said)
	}
	vms := r.create(t, v, 1)
	p := v.(target.Placer)
	var user *diag.Error
	if err := p.SetBalancing(t.Context(), r.tag, vms, false); !errors.As(err, &user) || user.Code != "vsphere-drs-overrides" || user.Hint == "" {
		t.Errorf("got %v", err)
	}
	if err := p.SetBalancing(t.Context(), r.tag, vms, true); err != nil {
		t.Error(err)
	}
	r.cluster().DrsConfig.DefaultVmBehavior = types.DrsBehaviorManual
	if err := p.SetBalancing(t.Context(), r.tag, vms, false); err != nil {
		t.Errorf("DRS only recommends: %v", err)
	}
}
