package vsphere

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/drs"
	"github.com/braggdev/bragg/internal/target/vsphere/storage"
	"github.com/braggdev/bragg/internal/target/vsphere/task"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
	"github.com/braggdev/bragg/internal/textio"
)

// place is one object of the inventory that the target file names.
type place struct {
	ref  types.ManagedObjectReference
	name string
}

// site is where VMs are made: the objects of one cluster. They are found when the target is opened.
type site struct {
	vc                                                    *vcenter.Client
	settings                                              settings
	datacenter, cluster, folder, pool, datastore, network place
	known                                                 recordCache
	runs                                                  marks
	made                                                  marks // of runs for which this program made VMs or waited for them
	drs                                                   *drs.Cluster
}

// findSite finds the objects of the target file and reports all that are missing or ambiguous.
func findSite(ctx context.Context, vc *vcenter.Client, s settings) (*site, error) {
	finder := find.NewFinder(vc.Client, false)
	t := &site{vc: vc, settings: s}
	dc, err := only(ctx, "datacenter", s.datacenter, places(finder.DatacenterList))
	if err != nil {
		return nil, vc.Explain("find the datacenter", err)
	}
	t.datacenter = dc
	finder.SetDatacenter(object.NewDatacenter(vc.Client, dc.ref))
	var errs []error
	add := func(to *place, found place, err error) {
		if err != nil {
			errs = append(errs, err)
		}
		*to = found
	}
	found, err := only(ctx, "cluster", s.cluster, places(finder.ClusterComputeResourceList))
	add(&t.cluster, found, err)
	found, err = t.findStore(ctx, finder)
	add(&t.datastore, found, err)
	found, err = only(ctx, "network", s.network, ports(finder))
	add(&t.network, found, err)
	found, err = t.findFolder(ctx, finder)
	add(&t.folder, found, err)
	if t.cluster.name != "" {
		found, err = t.findPool(ctx, finder)
		add(&t.pool, found, err)
	}
	if len(errs) > 0 {
		return nil, vc.Explain("find the objects of the target file", vcenter.Several(errs))
	}
	for _, one := range []place{t.datacenter, t.cluster, t.folder, t.pool, t.datastore, t.network} {
		vc.Remember(one.ref, one.name)
	}
	t.drs = &drs.Cluster{VC: vc, Ref: t.cluster.ref, Name: t.cluster.name}
	return t, nil
}

// findStore finds the datastore, or selects one of the datastore cluster that the target file names.
func (t *site) findStore(ctx context.Context, finder *find.Finder) (place, error) {
	name := t.settings.datastore
	found, err := only(ctx, "datastore", name, places(finder.DatastoreList))
	if err == nil || name == "" || t.cluster.name == "" {
		return found, err
	}
	pod, isPod := t.pod(ctx, finder, name)
	if !isPod {
		return found, err
	}
	one, err := storage.Member(ctx, t.vc, pod.ref, pod.name, t.cluster.ref)
	return place{one.Ref, one.Name}, err
}

// pod finds a datastore cluster. No datastore of the datacenter has its name.
func (t *site) pod(ctx context.Context, finder *find.Finder, name string) (place, bool) {
	pods, err := places(finder.DatastoreClusterList)(ctx, name)
	if err != nil || len(pods) != 1 {
		return place{}, false
	}
	stores, _ := finder.DatastoreList(ctx, name)
	return pods[0], len(stores) == 0
}

// lister lists the objects of one kind that match a name, a path or a pattern.
type lister func(ctx context.Context, pattern string) ([]place, error)

// ports leaves out the uplinks of distributed switches, to which no VM can be connected.
func ports(finder *find.Finder) lister {
	return func(ctx context.Context, pattern string) ([]place, error) {
		all, err := finder.NetworkList(ctx, pattern)
		var list []place
		for _, n := range all {
			name := path.Base(n.GetInventoryPath())
			if !strings.HasSuffix(n.Reference().Type, "DistributedVirtualSwitch") && !strings.Contains(name, "DVUplinks") {
				list = append(list, place{n.Reference(), name})
			}
		}
		return list, err
	}
}

func (t *site) findFolder(ctx context.Context, finder *find.Finder) (place, error) {
	if t.settings.folder == "" {
		folders, err := object.NewDatacenter(t.vc.Client, t.datacenter.ref).Folders(ctx)
		if err != nil {
			return place{}, err
		}
		return place{folders.VmFolder.Reference(), "vm"}, nil
	}
	return only(ctx, "folder", t.settings.folder, func(ctx context.Context, pattern string) ([]place, error) {
		if pattern == "*" {
			pattern = "vm/*" // and not those for hosts, networks and datastores
		}
		found, err := finder.FolderList(ctx, pattern)
		return all(found), err
	})
}

func (t *site) findPool(ctx context.Context, finder *find.Finder) (place, error) {
	if t.settings.pool == "" {
		var c mo.ClusterComputeResource
		if err := t.vc.Collector().RetrieveOne(ctx, t.cluster.ref, []string{"resourcePool"}, &c); err != nil {
			return place{}, err
		}
		if c.ResourcePool == nil {
			return place{}, fmt.Errorf("cluster %q shows no resource pool", t.cluster.name)
		}
		return place{*c.ResourcePool, "Resources"}, nil
	}
	return only(ctx, "resource pool", t.settings.pool, func(ctx context.Context, pattern string) ([]place, error) {
		if !strings.Contains(pattern, "/") {
			pattern = path.Join("*", "Resources", pattern)
		}
		list, err := finder.ResourcePoolList(ctx, pattern)
		if len(list) > 1 { // pools of other clusters have the same name
			list = slices.DeleteFunc(list, func(p *object.ResourcePool) bool { return !strings.Contains(p.InventoryPath, "/"+t.cluster.name+"/") })
		}
		return all(list), err
	})
}

// named is an object of govmomi.
type named interface {
	Reference() types.ManagedObjectReference
	Name() string
}

// places lists objects of govmomi as values.
func places[T named](list func(context.Context, string) ([]T, error)) lister {
	return func(ctx context.Context, pattern string) ([]place, error) {
		found, err := list(ctx, pattern)
		return all(found), err
	}
}

func all[T named](list []T) []place {
	all := make([]place, len(list))
	for i, one := range list {
		all[i] = place{one.Reference(), one.Name()}
	}
	return all
}

// only returns the one object of that name, or the only one there is without a name.
func only(ctx context.Context, what, name string, list lister) (place, error) {
	found, err := list(ctx, cmp.Or(name, "*"))
	var missing *find.NotFoundError
	e := &diag.Error{Code: "vsphere-inventory", Exit: diag.ExitData}
	switch {
	case err != nil && !errors.As(err, &missing):
		return place{}, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		e.Message = fmt.Sprintf("there are %d %ss: %s", len(found), what, textio.Few(names(found), namesMax))
		e.Hint = "name one in the target file: " + keyOf[what]
		if name != "" {
			e.Message, e.Hint = fmt.Sprintf("%s %q: there are %d of that name", what, name, len(found)), "write its path, as govc find shows it"
		}
	case name == "":
		e.Message, e.Hint = fmt.Sprintf("there is no %s that this user can see", what), "the user of the target file needs the privilege System.View there"
	default:
		e.Message, e.Hint = fmt.Sprintf("there is no %s %q", what, name), "name it as the vSphere Client shows it, or by its path: "+keyOf[what]
		// The list only helps to find the right name: without it the error is the same.
		if others, err := list(ctx, "*"); err == nil && len(others) > 0 {
			e.Message += " (found: " + textio.Few(names(others), namesMax) + ")"
			if near := diag.Nearest(name, names(others)); near != "" {
				e.Hint = fmt.Sprintf("did you mean %q?", near)
			}
		}
	}
	return place{}, e
}

// namesMax bounds the objects that a message names.
const namesMax = 10

func names(list []place) []string {
	var names []string
	for _, one := range list {
		names = append(names, one.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keyOf says where the target file names an object.
var keyOf = map[string]string{
	"datacenter": "options: {datacenter: …}", "cluster": "options: {cluster: …}", "datastore": "pool: …", "network": "network: …",
	"folder": "options: {folder: …}", "resource pool": "options: {resource_pool: …}", "template": "templates: {NAME: …}",
}

// vms makes changes of VMs.
func (t *site) vms() task.VMs { return task.VMs{Client: t.vc} }

// usable returns why the target cannot be used any more.
func (t *site) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.vc.Closed() {
		return vcenter.ErrClosed
	}
	return nil
}

// Ready returns nil when every host of the cluster answers, is not in maintenance mode and sees the datastore.
func (t *site) Ready(ctx context.Context) error {
	hosts, err := t.hosts(ctx)
	if err != nil {
		return err
	}
	var errs vcenter.Several
	for _, h := range hosts {
		if err := h.usable(); err != nil {
			errs = append(errs, err)
		} else if err := h.sees(t.datastore); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// HostUp returns nil when vCenter is connected with the host.
func (t *site) HostUp(ctx context.Context, nodeID string) error {
	h, err := t.host(ctx, nodeID)
	if err != nil {
		return err
	}
	return h.answers()
}

// DatastoreVisible returns nil when the host sees the datastore and can use it.
func (t *site) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	h, err := t.host(ctx, nodeID)
	if err != nil {
		return err
	}
	if err := h.answers(); err != nil {
		return err
	}
	at := t.datastore
	if datastore != "" && datastore != at.name {
		if at, err = t.findDatastore(ctx, datastore); err != nil {
			return err
		}
	}
	return h.sees(at)
}

// findDatastore finds a datastore of the datacenter by its name.
func (t *site) findDatastore(ctx context.Context, name string) (place, error) {
	finder := find.NewFinder(t.vc.Client, false)
	finder.SetDatacenter(object.NewDatacenter(t.vc.Client, t.datacenter.ref))
	found, err := only(ctx, "datastore", name, places(finder.DatastoreList))
	if err == nil {
		return found, nil
	}
	if _, isPod := t.pod(ctx, finder, name); isPod {
		err = &diag.Error{Code: "vsphere-inventory", Exit: diag.ExitData, Message: fmt.Sprintf("%q is a datastore cluster", name), Hint: "name one of its datastores"}
	}
	return place{}, t.vc.Explain("find datastore", err)
}

// NodeSpace returns the capacity and the free space of the datastore, as vCenter last read them from a host.
func (t *site) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	h, err := t.host(ctx, nodeID)
	if err != nil {
		return target.Space{}, err
	}
	if err := h.sees(t.datastore); err != nil {
		return target.Space{}, err
	}
	ds, err := t.readDatastore(ctx)
	if err != nil {
		return target.Space{}, err
	}
	return target.Space{
		Storage: ds.Summary.Url, Place: fmt.Sprintf("datastore %q", t.datastore.name), FreeBytes: ds.Summary.FreeSpace,
		TotalBytes: ds.Summary.Capacity,
	}, nil
}

func (t *site) readDatastore(ctx context.Context) (mo.Datastore, error) {
	var ds mo.Datastore
	err := t.vc.Collector().RetrieveOne(ctx, t.datastore.ref, []string{"name", "parent", "summary", "info"}, &ds)
	return ds, t.vc.Explain(fmt.Sprintf("read datastore %q", t.datastore.name), err)
}
