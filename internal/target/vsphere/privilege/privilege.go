// Package privilege lists what a user of vCenter must be allowed to do for runs, and checks it before a run begins.
//
//	Needed ──▶ privileges by kind of object ──▶ Check: HasPrivilegeOnEntities ──▶ one error with all that are missing
package privilege

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
	"github.com/braggdev/bragg/internal/textio"
)

// Object is one object on which privileges are needed.
type Object struct {
	Ref  types.ManagedObjectReference
	Kind Kind
	Name string
}

// Kind is what an object is for.
type Kind string

const (
	Folder    Kind = "folder" // and all VMs in it
	Pool      Kind = "resource pool"
	Datastore Kind = "datastore"
	Network   Kind = "network"
	Cluster   Kind = "cluster"
	Host      Kind = "host" // for maintenance mode
	Template  Kind = "template"
	Import    Kind = "folder, for the import of an image"
)

// needed are the privileges on objects of each kind, as the API calls them.
var needed = map[Kind][]string{
	Folder: {
		"VirtualMachine.Inventory.Create", "VirtualMachine.Inventory.CreateFromExisting", "VirtualMachine.Inventory.Delete",
		"VirtualMachine.Config.AddNewDisk", "VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Config.EditDevice",
		"VirtualMachine.Config.DiskExtend", "VirtualMachine.Config.CPUCount", "VirtualMachine.Config.Memory", "VirtualMachine.Config.Settings",
		"VirtualMachine.Config.AdvancedConfig", "VirtualMachine.Config.Annotation", "VirtualMachine.Interact.PowerOn",
		"VirtualMachine.Interact.PowerOff", "VirtualMachine.Provisioning.Clone", "VirtualMachine.State.CreateSnapshot",
		"VirtualMachine.State.RevertToSnapshot", "VirtualMachine.State.RemoveSnapshot",
	},
	Pool:      {"Resource.AssignVMToPool", "Resource.HotMigrate", "Resource.ColdMigrate"},
	Datastore: {"Datastore.AllocateSpace"},
	Network:   {"Network.Assign"},
	Cluster:   {"Host.Inventory.EditCluster"},
	Host:      {"Host.Config.Maintenance"},
	Template:  {"VirtualMachine.Provisioning.DeployTemplate"},
	Import:    {"VApp.Import", "VirtualMachine.Provisioning.MarkAsTemplate", "VirtualMachine.Config.Rename", "VirtualMachine.Provisioning.DeployTemplate"},
}

// Needed returns the privileges on objects of a kind.
func Needed(k Kind) []string { return slices.Clone(needed[k]) }

// Kinds lists the kinds in the order of reports.
func Kinds() []Kind { return []Kind{Folder, Pool, Datastore, Network, Cluster, Host, Template, Import} }

// Check reports all privileges that the session's user lacks, with the objects, as one error.
func Check(ctx context.Context, vc *vcenter.Client, objects []Object) error {
	if vc.ServiceContent.AuthorizationManager == nil {
		return nil
	}
	key, err := vc.SessionKey(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, k := range Kinds() {
		var of []types.ManagedObjectReference
		names := map[types.ManagedObjectReference]string{}
		for _, o := range objects {
			if o.Kind == k {
				of, names[o.Ref] = append(of, o.Ref), o.Name
			}
		}
		if len(of) == 0 {
			continue
		}
		res, err := methods.HasPrivilegeOnEntities(ctx, vc.Client, &types.HasPrivilegeOnEntities{
			This: *vc.ServiceContent.AuthorizationManager, Entity: of, SessionId: key, PrivId: needed[k],
		})
		if err != nil {
			return vc.Explain("check the privileges of the user", err)
		}
		missing = append(missing, lacking(k, res.Returnval, names)...)
	}
	if len(missing) == 0 {
		return nil
	}
	return &diag.Error{
		Code: "vsphere-privileges", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("user %q lacks privileges: %s", vc.User(), strings.Join(missing, "; ")),
		Hint:    "docs/guides/vsphere.md has a role with all of them, for govc",
	}
}

// objectsMax bounds the objects that a message names.
const objectsMax = 5

// lacking lists what is missing on objects of one kind; objects that lack the same are named together.
func lacking(k Kind, all []types.EntityPrivilege, names map[types.ManagedObjectReference]string) []string {
	var order []string
	on := map[string][]string{}
	for _, one := range all {
		var lacks []string
		for _, p := range one.PrivAvailability {
			if !p.IsGranted {
				lacks = append(lacks, p.PrivId)
			}
		}
		if len(lacks) == 0 {
			continue
		}
		text := strings.Join(lacks, ", ")
		if on[text] == nil {
			order = append(order, text)
		}
		on[text] = append(on[text], fmt.Sprintf("%q", names[one.Entity]))
	}
	var missing []string
	for _, text := range order {
		slices.Sort(on[text])
		missing = append(missing, fmt.Sprintf("on %s %s: %s", plural(k, len(on[text])), textio.Few(on[text], objectsMax), text))
	}
	return missing
}

func plural(k Kind, n int) string {
	if n == 1 || k == Import {
		return string(k)
	}
	return string(k) + "s"
}
