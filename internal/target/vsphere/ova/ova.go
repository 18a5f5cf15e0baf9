// Package ova imports an image of this machine into a vCenter, once for each datastore, and finds it again by its hash.
//
//	Import ──▶ template with the hash of the file? ──▶ it
//	       └─▶ import spec ──▶ upload of the disks ──▶ mark with the hash, snapshot, template ──▶ its final name
//
// An import that was interrupted keeps its temporary name and has no hash: the next one removes it.
package ova

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/ovf/importer"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/target/vsphere/task"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// keyImage is the setting of an imported template with the SHA-256 of its file.
const keyImage = "bragg.image"

// digestDigits of the hash are in names.
const digestDigits = 16

// IsFile reports whether a template of a target file is a file of this machine.
func IsFile(value string) bool {
	switch strings.ToLower(filepath.Ext(value)) {
	case ".ova", ".ovf":
		return true
	}
	return false
}

// Place is where images are imported to.
type Place struct {
	VC                                        task.VMs
	Datacenter, Folder, Pool, Datastore, Host types.ManagedObjectReference
	Network                                   types.ManagedObjectReference // of all network cards
}

// Import returns the template of a file.
func (p Place) Import(ctx context.Context, path string) (types.ManagedObjectReference, error) {
	digest, err := hash(path)
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	name := fmt.Sprintf("bragg-image-%.30s-%s-%s", base, digest[:digestDigits], p.Datastore.Value)
	found, err := p.find(ctx, name)
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	if found != nil {
		if record.Text(found.Config.ExtraConfig, keyImage) != digest {
			return types.ManagedObjectReference{}, fmt.Errorf("a VM %q exists already and is not this image", name)
		}
		return found.Self, nil
	}
	partial := name + "-partial"
	if found, err = p.find(ctx, partial); err != nil {
		return types.ManagedObjectReference{}, err
	}
	if found != nil {
		if found.Config.Annotation != annotation(digest) {
			return types.ManagedObjectReference{}, fmt.Errorf("a VM %q exists already and is not touched", partial)
		}
		if err := p.VC.Destroy(ctx, found.Self); err != nil {
			return types.ManagedObjectReference{}, fmt.Errorf("remove an interrupted import: %w", err)
		}
	}
	return p.upload(ctx, path, partial, name, digest)
}

func annotation(digest string) string {
	return "Image of Bragg, imported from a file with SHA-256 " + digest + ". Runs clone it; it may be deleted when none does."
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// find finds a VM of the folder by name; nil without one.
func (p Place) find(ctx context.Context, name string) (*mo.VirtualMachine, error) {
	ref, err := object.NewSearchIndex(p.VC.Client.Client).FindChild(ctx, object.NewFolder(p.VC.Client.Client, p.Folder), name)
	if err != nil || ref == nil {
		return nil, err
	}
	var vm mo.VirtualMachine
	err = p.VC.Collector().RetrieveOne(ctx, ref.Reference(), []string{"config"}, &vm)
	if err == nil && vm.Config == nil {
		err = task.ErrUnreadable
	}
	return &vm, err
}

// upload imports a file. The lease of the upload is kept alive by an updater: without one the upload blocks.
func (p Place) upload(ctx context.Context, path, partial, name, digest string) (types.ManagedObjectReference, error) {
	c := p.VC.Client.Client
	finder := find.NewFinder(c, false).SetDatacenter(object.NewDatacenter(c, p.Datacenter))
	var archive importer.Archive = &importer.FileArchive{Path: path}
	inside := path
	if strings.EqualFold(filepath.Ext(path), ".ova") {
		archive, inside = &importer.TapeArchive{Path: path}, "*.ovf"
	}
	imp := importer.Importer{
		Log: func(string) (int, error) { return 0, nil }, Client: c, Finder: finder, Archive: archive,
		ResourcePool: object.NewResourcePool(c, p.Pool), Datastore: object.NewDatastore(c, p.Datastore),
		Host: object.NewHostSystem(c, p.Host), Folder: object.NewFolder(c, p.Folder),
	}
	options := importer.Options{Name: &partial, Annotation: annotation(digest), DiskProvisioning: string(types.OvfCreateImportSpecParamsDiskProvisioningTypeThin)}
	var vm *types.ManagedObjectReference
	networks, err := p.networks(archive, inside)
	if err == nil {
		options.NetworkMapping = networks
		vm, err = imp.Import(ctx, inside, options)
	}
	if err != nil {
		return types.ManagedObjectReference{}, fmt.Errorf("import %q: %w", filepath.Base(path), err)
	}
	err = p.VC.Reconfigure(ctx, *vm, types.VirtualMachineConfigSpec{
		Annotation: annotation(digest), ExtraConfig: record.Options(map[string]string{keyImage: digest}),
	})
	if err == nil {
		_, err = p.VC.Snapshot(ctx, *vm, "bragg linked clones")
	}
	if err == nil {
		_, err = methods.MarkAsTemplate(ctx, c, &types.MarkAsTemplate{This: *vm})
	}
	if err == nil {
		_, err = p.VC.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (types.ManagedObjectReference, error) {
			res, err := methods.Rename_Task(ctx, c, &types.Rename_Task{This: *vm, NewName: name})
			if err != nil {
				return types.ManagedObjectReference{}, err
			}
			return res.Returnval, nil
		}})
	}
	if err != nil {
		return types.ManagedObjectReference{}, fmt.Errorf("import %q: %w", filepath.Base(path), err)
	}
	return *vm, nil
}

// networks connects all networks of the descriptor with the one of the target file: vCenter would choose any.
func (p Place) networks(archive importer.Archive, inside string) ([]importer.Network, error) {
	text, err := importer.ReadOvf(inside, archive)
	if err != nil {
		return nil, err
	}
	described, err := importer.ReadEnvelope(text)
	if err != nil || described.Network == nil {
		return nil, err
	}
	var all []importer.Network
	for _, one := range described.Network.Networks {
		all = append(all, importer.Network{Name: one.Name, Network: p.Network.String()})
	}
	return all, nil
}
