// Package storage selects a datastore of a datastore cluster, and reports what Storage DRS may do with it.
//
//	Member ──▶ datastores of the cluster ──▶ usable, seen by most hosts, most free space ──▶ one of them
//
// All VMs of a run are on one datastore, so that groups and runs are comparable. The recommendations of Storage DRS are not used: they are made
// for one VM at a time, may differ between VMs, and depend on the latency that earlier loads caused.
package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// Datastore is one datastore.
type Datastore struct {
	Ref  types.ManagedObjectReference
	Name string
}

// member is a datastore of a datastore cluster.
type member struct {
	Datastore
	hosts     int // that see it
	freeBytes int64
	unusable  string // why
}

// Member selects the datastore of a datastore cluster on which VMs are made: of those that most hosts of the cluster see, the one with the most
// free space.
func Member(ctx context.Context, vc *vcenter.Client, pod types.ManagedObjectReference, name string, cluster types.ManagedObjectReference) (Datastore, error) {
	all, err := members(ctx, vc, pod, cluster)
	if err != nil {
		return Datastore{}, vc.Explain(fmt.Sprintf("read datastore cluster %q", name), err)
	}
	var why []string
	usable := slices.DeleteFunc(slices.Clone(all), func(m member) bool {
		if m.unusable != "" {
			why = append(why, fmt.Sprintf("%q %s", m.Name, m.unusable))
		}
		return m.unusable != ""
	})
	if len(usable) == 0 {
		slices.Sort(why)
		return Datastore{}, &diag.Error{
			Code: "vsphere-datastore-cluster", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("datastore cluster %q has no usable datastore: %s", name, cmp.Or(strings.Join(why[:min(len(why), 10)], ", "), "it is empty")),
			Hint:    "name a datastore that the hosts of the cluster see: pool: …",
		}
	}
	return slices.MaxFunc(usable, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.freeBytes, b.freeBytes), strings.Compare(b.Name, a.Name))
	}).Datastore, nil
}

func members(ctx context.Context, vc *vcenter.Client, pod, cluster types.ManagedObjectReference) ([]member, error) {
	seen, err := sightings(ctx, vc, cluster)
	if err != nil {
		return nil, err
	}
	var p mo.StoragePod
	if err := vc.Collector().RetrieveOne(ctx, pod, []string{"childEntity"}, &p); err != nil || len(p.ChildEntity) == 0 {
		return nil, err
	}
	var stores []mo.Datastore
	if err := vc.Collector().Retrieve(ctx, p.ChildEntity, []string{"name", "summary"}, &stores); err != nil {
		return nil, err
	}
	var all []member
	for _, d := range stores {
		m := member{Datastore: Datastore{d.Self, d.Name}, hosts: seen[d.Self], freeBytes: d.Summary.FreeSpace}
		mode := cmp.Or(d.Summary.MaintenanceMode, string(types.DatastoreSummaryMaintenanceModeStateNormal))
		switch {
		case mode != string(types.DatastoreSummaryMaintenanceModeStateNormal):
			m.unusable = "is in maintenance mode"
		case !d.Summary.Accessible:
			m.unusable = "is not accessible"
		case m.hosts == 0:
			m.unusable = "is not visible to the hosts of the cluster"
		}
		all = append(all, m)
	}
	return all, nil
}

// sightings is how many hosts of a cluster see each datastore.
func sightings(ctx context.Context, vc *vcenter.Client, cluster types.ManagedObjectReference) (map[types.ManagedObjectReference]int, error) {
	var c mo.ClusterComputeResource
	if err := vc.Collector().RetrieveOne(ctx, cluster, []string{"host"}, &c); err != nil || len(c.Host) == 0 {
		return nil, err
	}
	var hosts []mo.HostSystem
	if err := vc.Collector().Retrieve(ctx, c.Host, []string{"datastore"}, &hosts); err != nil {
		return nil, err
	}
	seen := map[types.ManagedObjectReference]int{}
	for _, h := range hosts {
		for _, d := range h.Datastore {
			seen[d]++
		}
	}
	return seen, nil
}

// Facts describes the datastore cluster of a datastore that has one.
func Facts(ctx context.Context, vc *vcenter.Client, d mo.Datastore) ([]target.Fact, error) {
	if d.Parent == nil || d.Parent.Type != "StoragePod" {
		return nil, nil
	}
	var p mo.StoragePod
	if err := vc.Collector().RetrieveOne(ctx, *d.Parent, []string{"name", "podStorageDrsEntry"}, &p); err != nil {
		return nil, vc.Explain(fmt.Sprintf("read the datastore cluster of %q", d.Name), err)
	}
	return []target.Fact{
		{Name: "datastore cluster", Value: p.Name + "; all VMs are made on one of its datastores"}, {Name: "Storage DRS", Value: balancing(p.PodStorageDrsEntry)},
	}, nil
}

func balancing(e *types.PodStorageDrsEntry) string {
	switch {
	case e == nil:
		return "unknown"
	case !e.StorageDrsConfig.PodConfig.Enabled:
		return "off"
	case e.StorageDrsConfig.PodConfig.DefaultVmBehavior == string(types.StorageDrsPodConfigInfoBehaviorAutomated):
		return "on, automated: it may move disks of VMs during runs; events of the run report that"
	}
	return "on, manual: it only recommends moves"
}
