// Package leasevm keeps the lease of a cluster in its vCenter: a VM without disks that is never started.
//
//	Take ──▶ make the VM, with the holder in its settings ──▶ list all such VMs of the cluster ──▶ the first one holds
//
// vCenter numbers its objects in the order in which they appear: of two leases the one with the lower number holds. A
// controller that makes one looks afterwards, and sees every lease that came before. So exactly one of several wins, also
// where their target files name different folders, in which one name may be there twice. A dead holder's lease is removed
// by its object, which no later lease has again: two controllers that both see a dead holder never remove each other's.
// Decision 0019 compares this with folders, custom attributes and files.
package leasevm

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/target/vsphere/task"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

const keyLease = "bragg.lease"

// Place is where the lease of a cluster is.
type Place struct {
	VC                    task.VMs
	Cluster, Folder, Pool types.ManagedObjectReference
	ClusterName           string
	Datastore             string // name
}

var _ lease.Place = Place{}

// VM is the name of the VM of a lease.
func (p Place) VM() string { return "bragg-lease-" + p.Cluster.Value }

// Name is that of the cluster.
func (p Place) Name() string { return p.ClusterName }

// Identity tells the cluster from all others.
func (p Place) Identity(context.Context) (string, error) {
	return p.VC.ServiceContent.About.InstanceUuid + "/" + p.Cluster.Value, nil
}

// takesMax bounds how often a lease is tried for that is free one moment and taken the next.
const takesMax = 5

// Take takes the lease or renews it; see lease.Place.
func (p Place) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	h := o.Holder
	for range takesMax {
		h.Renewed = time.Now().UTC().Truncate(time.Second)
		all, err := p.held(ctx)
		switch {
		case err != nil:
		case len(all) == 0:
			if now, _, err := p.VC.Now(ctx); err == nil {
				h.Fence = max(h.Fence, uint64(now.UnixNano())) // by a clock that all controllers share
			}
			err = p.create(ctx, h)
		case all[0].holder.ID == h.ID:
			h.Fence = max(h.Fence, all[0].holder.Fence)
			err = p.VC.Reconfigure(ctx, all[0].ref, types.VirtualMachineConfigSpec{Annotation: p.says(h), ExtraConfig: leaseExtra(h)})
			if err == nil {
				return lease.Answer{Fence: h.Fence}, nil
			}
		case o.Over != "" && all[0].holder.ID == o.Over:
			h.Fence = max(h.Fence, all[0].holder.Fence+1)
			err = p.VC.Destroy(ctx, all[0].ref)
		default:
			return lease.Answer{Other: &all[0].holder}, p.retract(ctx, all, h.ID)
		}
		if err != nil && !vcenter.Taken(err) && !vcenter.Gone(err) { // both: another controller was faster
			return lease.Answer{}, p.VC.Explain("take the lease", err)
		}
	}
	return lease.Answer{}, errors.New("the lease comes and goes")
}

// retract removes a lease of this controller that came too late.
func (p Place) retract(ctx context.Context, all []leaseVM, id string) error {
	for _, one := range all {
		if one.holder.ID == id {
			return p.VC.Destroy(ctx, one.ref)
		}
	}
	return nil
}

// Drop releases the lease; see lease.Place.
func (p Place) Drop(ctx context.Context, id string) error {
	all, err := p.held(ctx)
	if err != nil {
		return err
	}
	return p.retract(ctx, all, id)
}

// leaseVM is one lease of the cluster.
type leaseVM struct {
	ref    types.ManagedObjectReference
	holder lease.Holder
}

// number is that of an object: "vm-42" is 42.
func number(ref types.ManagedObjectReference) int64 {
	_, digits, _ := strings.Cut(ref.Value, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}

// held reads the leases of the cluster, the first one first. It is the one that counts.
func (p Place) held(ctx context.Context) ([]leaseVM, error) {
	for range takesMax {
		refs, err := p.named(ctx)
		if err != nil {
			return nil, err
		}
		if len(refs) == 0 {
			return nil, nil
		}
		var read []mo.VirtualMachine
		err = p.VC.Collector().Retrieve(ctx, refs, []string{"config.extraConfig"}, &read)
		if vcenter.Gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var all []leaseVM
		for _, vm := range read {
			all = append(all, leaseVM{vm.Self, holderOf(vm)})
		}
		slices.SortFunc(all, func(a, b leaseVM) int { return cmp.Compare(number(a.ref), number(b.ref)) })
		return all, nil
	}
	return nil, errors.New("the lease comes and goes")
}

// named finds the VMs of the cluster with the name of a lease.
func (p Place) named(ctx context.Context) ([]types.ManagedObjectReference, error) {
	toVMs := &types.TraversalSpec{Type: "HostSystem", Path: "vm"}
	toHosts := &types.TraversalSpec{Type: "ComputeResource", Path: "host", SelectSet: []types.BaseSelectionSpec{toVMs}}
	found, err := mo.RetrievePropertiesEx(ctx, p.VC.Client, types.RetrievePropertiesEx{
		This: p.VC.ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{{
			ObjectSet: []types.ObjectSpec{{Obj: p.Cluster, Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{toHosts}}},
			PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"name"}}},
		}},
	})
	var refs []types.ManagedObjectReference
	for _, one := range found {
		if len(one.PropSet) == 1 && one.PropSet[0].Val == p.VM() {
			refs = append(refs, one.Obj)
		}
	}
	return refs, err
}

// holderOf reads the holder of a lease. What cannot be read stays unknown: the lease is there all the same.
func holderOf(vm mo.VirtualMachine) lease.Holder {
	var said lease.Holder
	if vm.Config != nil {
		plain, err := base64.StdEncoding.DecodeString(record.Text(vm.Config.ExtraConfig, keyLease))
		if err == nil && json.Unmarshal(plain, &said) == nil && said.ID != "" {
			return said.Printable()
		}
	}
	return lease.Holder{ID: vm.Self.Value, Run: "unknown", User: "unknown"}
}

func leaseExtra(h lease.Holder) []types.BaseOptionValue {
	text, _ := json.Marshal(h) // always possible
	return record.Options(map[string]string{keyLease: base64.StdEncoding.EncodeToString(text)})
}

func (p Place) says(h lease.Holder) string {
	return fmt.Sprintf("Lease of cluster %q for one controller of Bragg: run %s of %s since %s. It is never started and removed at the end of the run.",
		p.ClusterName, h.Run, h.User, h.Since.Format(time.RFC3339))
}

// create makes the VM of a lease. vCenter refuses a second one of that name in the folder.
func (p Place) create(ctx context.Context, h lease.Holder) error {
	return p.VC.Create(ctx, p.Folder, p.Pool, types.VirtualMachineConfigSpec{
		Name: p.VM(), GuestId: string(types.VirtualMachineGuestOsIdentifierOtherGuest64), NumCPUs: 1, MemoryMB: 4,
		Annotation: p.says(h), ExtraConfig: leaseExtra(h), Files: &types.VirtualMachineFileInfo{VmPathName: "[" + p.Datastore + "]"},
	})
}
