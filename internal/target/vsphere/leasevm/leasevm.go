// Package leasevm keeps the lease of a cluster in its vCenter: a VM without disks that is never started.
//
//	Take ──▶ make the VM, as wanted ──▶ list all such VMs of the cluster ──▶ alone: write that it is held
//	                                                                └──▶ not alone: the first one waits, others withdraw
//
// A controller holds the lease when it looked after its own VM had appeared, and saw no other. Of two controllers the one
// that looks later sees both VMs, so that both never hold it. If both see both, the one with the lower object number stays
// and the other withdraws, so that one of them gets it. Numbers only decide between those: vCenter may show a VM with a
// higher one first. This works across folders, in which one name may be there twice. A dead holder's VM is removed by its
// object, which no later VM has again: two controllers that both see a dead holder never remove each other's. Decision 0019
// compares this with folders, custom attributes and files.
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
	"github.com/braggdev/bragg/internal/wait"
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
		if err != nil {
			return lease.Answer{}, p.VC.Explain("read the lease", err)
		}
		switch {
		case len(all) == 0:
			if now, _, err := p.VC.Now(ctx); err == nil {
				h.Fence = max(h.Fence, uint64(now.UnixNano())) // by a clock that all controllers share
			}
			if err = p.create(ctx, h); err == nil {
				return p.contend(ctx, h)
			}
		case all[0].Holder.ID == h.ID && all[0].Held:
			h.Fence = max(h.Fence, all[0].Holder.Fence)
			if err = p.write(ctx, all[0].ref, h); err == nil {
				return lease.Answer{Fence: h.Fence}, nil
			}
		case all[0].Holder.ID == h.ID:
			return p.contend(ctx, h) // an earlier call did not get an answer
		case o.Over != "" && all[0].Holder.ID == o.Over:
			h.Fence = max(h.Fence, all[0].Holder.Fence+1)
			err = p.VC.Destroy(ctx, all[0].ref)
		default:
			return lease.Answer{Other: &all[0].Holder}, p.retract(ctx, all, h.ID)
		}
		if err != nil && !vcenter.Taken(err) && !vcenter.Gone(err) { // both: another controller was faster
			return lease.Answer{}, p.VC.Explain("take the lease", err)
		}
	}
	return lease.Answer{}, errors.New("the lease comes and goes")
}

// Of a controller that waits for another one to withdraw: between two looks, and at most. One that died does not withdraw,
// and is reported as the holder.
const (
	contendPause = 100 * time.Millisecond
	contendMax   = 15 * time.Second
)

// contend decides between controllers that made their VMs at the same time.
func (p Place) contend(ctx context.Context, h lease.Holder) (lease.Answer, error) {
	for until := time.Now().Add(contendMax); ; {
		all, err := p.held(ctx)
		if err != nil {
			return lease.Answer{}, p.VC.Explain("read the lease", err)
		}
		own := slices.IndexFunc(all, func(one leaseVM) bool { return one.Holder.ID == h.ID })
		switch {
		case own < 0:
			return lease.Answer{}, errors.New("the lease was removed by another party")
		case len(all) == 1:
			return lease.Answer{Fence: h.Fence}, p.VC.Explain("take the lease", p.write(ctx, all[0].ref, h))
		case own > 0:
			return lease.Answer{Other: &all[0].Holder}, p.retract(ctx, all, h.ID)
		case time.Now().After(until):
			return lease.Answer{Other: &all[1].Holder}, p.retract(ctx, all, h.ID)
		}
		if err := wait.For(ctx, contendPause); err != nil {
			return lease.Answer{}, errors.Join(err, p.retract(context.WithoutCancel(ctx), all, h.ID))
		}
	}
}

// write records that the lease is held, or that its holder is alive.
func (p Place) write(ctx context.Context, vm types.ManagedObjectReference, h lease.Holder) error {
	return p.VC.Reconfigure(ctx, vm, types.VirtualMachineConfigSpec{Annotation: p.says(h), ExtraConfig: extra(entry{h, true})})
}

// retract removes a lease of this controller that came too late.
func (p Place) retract(ctx context.Context, all []leaseVM, id string) error {
	for _, one := range all {
		if one.Holder.ID == id {
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

// entry is what the VM of a lease says.
type entry struct {
	Holder lease.Holder `json:"holder"`
	Held   bool         `json:"held"` // false: it is wanted
}

// leaseVM is one lease of the cluster.
type leaseVM struct {
	ref types.ManagedObjectReference
	entry
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

// held reads the leases of the cluster: the one that is held first, then by number.
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
			all = append(all, leaseVM{vm.Self, entryOf(vm)})
		}
		slices.SortFunc(all, func(a, b leaseVM) int {
			if a.Held != b.Held {
				if a.Held {
					return -1
				}
				return 1
			}
			return cmp.Compare(number(a.ref), number(b.ref))
		})
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

// entryOf reads the VM of a lease. What cannot be read stays unknown: the lease is there all the same.
func entryOf(vm mo.VirtualMachine) entry {
	if vm.Config != nil {
		var said entry
		plain, err := base64.StdEncoding.DecodeString(record.Text(vm.Config.ExtraConfig, keyLease))
		if err == nil && json.Unmarshal(plain, &said) == nil && said.Holder.ID != "" {
			return entry{said.Holder.Printable(), said.Held}
		}
	}
	return entry{lease.Holder{ID: vm.Self.Value, Run: "unknown", User: "unknown"}, true}
}

func extra(e entry) []types.BaseOptionValue {
	text, _ := json.Marshal(e) // always possible
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
		Annotation: p.says(h), ExtraConfig: extra(entry{Holder: h}), Files: &types.VirtualMachineFileInfo{VmPathName: "[" + p.Datastore + "]"},
	})
}
