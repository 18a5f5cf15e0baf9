package vsphere

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/hardware"
	"github.com/braggdev/bragg/internal/target/vsphere/ova"
	"github.com/braggdev/bragg/internal/target/vsphere/task"
)

// templates are those of the target file.
type templates struct {
	site   *site
	config target.Config
	reads  target.KeyLocks

	mu   sync.Mutex
	read map[string]*origin // by name
}

// get finds a template: a template or VM of the vCenter by its name or path, or a file that is imported once.
func (t *templates) get(ctx context.Context, name string) (*origin, error) {
	value, err := t.config.Template(name)
	if err != nil {
		return nil, err
	}
	defer t.reads.Lock(name)()
	t.mu.Lock()
	known := t.read[name]
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err := t.open(ctx, name, value)
	if err != nil {
		return nil, t.site.vc.Explain(fmt.Sprintf("find template %q", name), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read == nil {
		t.read = map[string]*origin{}
	}
	t.read[name] = found
	t.site.vc.Remember(found.ref, found.name)
	return found, nil
}

func (t *templates) open(ctx context.Context, name, value string) (*origin, error) {
	if ova.IsFile(value) {
		return t.bring(ctx, value)
	}
	finder := find.NewFinder(t.site.vc.Client, false)
	finder.SetDatacenter(object.NewDatacenter(t.site.vc.Client, t.site.datacenter.ref))
	at, err := only(ctx, "template", value, places(finder.VirtualMachineList))
	if err != nil {
		return nil, err
	}
	return t.site.origin(ctx, at, t.site.settings.clones == clonesLinked)
}

// file reports whether a template is a file of this machine, which is imported when the first VM is made from it.
func (t *templates) file(name string) bool { return ova.IsFile(t.config.Templates[name]) }

// bring imports a file, or finds what an earlier run imported.
func (t *templates) bring(ctx context.Context, value string) (*origin, error) {
	path := t.config.FilePath(value)
	hosts, err := t.site.hosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		if h.usable() != nil || h.sees(t.site.datastore) != nil {
			continue
		}
		p := ova.Place{
			VC: t.site.vms(), Datacenter: t.site.datacenter.ref, Folder: t.site.folder.ref, Pool: t.site.pool.ref,
			Datastore: t.site.datastore.ref, Host: h.ref, Network: t.site.network.ref,
		}
		ref, err := p.Import(ctx, path)
		if err != nil {
			return nil, err
		}
		return t.site.origin(ctx, place{ref, filepath.Base(path)}, t.site.settings.clones == clonesLinked)
	}
	return nil, errors.New("no host can take an import")
}

// origin reads a template. Linked clones need a snapshot of it, which its owner made.
func (t *site) origin(ctx context.Context, at place, linked bool) (*origin, error) {
	var now mo.VirtualMachine
	err := t.vc.Collector().RetrieveOne(ctx, at.ref, []string{"config.hardware.device", "runtime.powerState", "snapshot"}, &now)
	if err != nil {
		return nil, err
	}
	if now.Config == nil {
		return nil, task.ErrUnreadable
	}
	o := &origin{place: at, devices: hardware.Devices{VirtualDeviceList: now.Config.Hardware.Device}}
	if !linked {
		return o, nil
	}
	if now.Snapshot == nil || now.Snapshot.CurrentSnapshot == nil {
		return nil, &diag.Error{
			Code: "vsphere-no-snapshot", Exit: diag.ExitData, Message: fmt.Sprintf("template %q has no snapshot that linked clones could share", at.name),
			Hint: "take one in the vSphere Client while it is a VM, or write options: {template_clones: full}",
		}
	}
	o.snapshot = now.Snapshot.CurrentSnapshot
	return o, nil
}
