package faults

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere"
)

// pod makes a datastore cluster with all datastores in it.
func (r *rig) pod(t *testing.T) *simulator.StoragePod {
	t.Helper()
	dc := object.NewDatacenter(r.Client().Client, r.Model.Map().Any("Datacenter").Reference())
	folders, err := dc.Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := folders.DatastoreFolder.CreateStoragePod(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	var stores []types.ManagedObjectReference
	for _, one := range r.Model.Map().All("Datastore") {
		stores = append(stores, one.Reference())
	}
	task, err := made.MoveInto(t.Context(), stores)
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Model.Map().Get(made.Reference()).(*simulator.StoragePod)
}

func (r *rig) datastore(name string) *simulator.Datastore {
	for _, one := range r.Model.Map().All("Datastore") {
		if d := one.(*simulator.Datastore); d.Name == name {
			return d
		}
	}
	return nil
}

// A target file may name a datastore cluster: VMs are made on its datastore with the most free space that can be used.
func TestDatastoreCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pod := r.pod(t)
	r.config.Pool = "pod"
	first, second := r.datastore("LocalDS_0"), r.datastore("LocalDS_1")
	first.Summary.FreeSpace, second.Summary.FreeSpace = 10<<30, 20<<30
	v := r.open(t)
	said := facts(t, v)
	if !strings.HasPrefix(said["datastore"], "LocalDS_1, ") || !strings.HasPrefix(said["datastore cluster"], "pod") || !strings.HasPrefix(said["Storage DRS"], "on, manual") {
		t.Errorf("facts: %v", said)
	}
	vms := r.create(t, v, 1)
	if err := v.(target.DatastoreRelocator).RelocateVMs(t.Context(), r.tag, vms, "pod"); err == nil || !strings.Contains(err.Error(), `"pod" is a datastore cluster`) {
		t.Errorf("got %v", err)
	}
	if err := v.Delete(t.Context(), r.tag, vms); err != nil {
		t.Fatal(err)
	}
	second.Summary.MaintenanceMode = string(types.DatastoreSummaryMaintenanceModeStateInMaintenance)
	pod.PodStorageDrsEntry.StorageDrsConfig.PodConfig.DefaultVmBehavior = string(types.StorageDrsPodConfigInfoBehaviorAutomated)
	said = facts(t, r.open(t))
	if !strings.HasPrefix(said["datastore"], "LocalDS_0, ") || !strings.Contains(said["Storage DRS"], "may move disks") {
		t.Errorf("facts: %v", said)
	}
	for _, h := range r.Hosts() {
		h.Datastore = slices.DeleteFunc(h.Datastore, func(ref types.ManagedObjectReference) bool { return ref == first.Self })
	}
	_, err := vsphere.Provider().Open(t.Context(), r.config, target.OpenOptions{})
	for _, part := range []string{`datastore cluster "pod"`, `"LocalDS_0" is not visible`, `"LocalDS_1" is in maintenance mode`} {
		if err == nil || !strings.Contains(diag.Sentence(err), part) {
			t.Errorf("got %v, want %s", err, part)
		}
	}
	// A datastore is also found by its name while it is in a datastore cluster.
	r.config.Pool = "LocalDS_0"
	pod.PodStorageDrsEntry.StorageDrsConfig.PodConfig.Enabled = false
	if said := facts(t, r.open(t)); !strings.HasPrefix(said["datastore cluster"], "pod") || said["Storage DRS"] != "off" {
		t.Errorf("facts: %v", said)
	}
}
