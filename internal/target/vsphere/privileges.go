package vsphere

import (
	"context"

	"github.com/braggdev/bragg/internal/target/vsphere/privilege"
)

// checkPrivileges reports what this user lacks for runs, and templates that do not exist. It is checked once: roles change seldom, and
// each plan opens the target again. Once a run has begun, its VMs are removed all the same.
func (t *Target) checkPrivileges(ctx context.Context) error {
	t.privileges.Lock()
	defer t.privileges.Unlock()
	if t.privileged || t.sought.Load() {
		return nil
	}
	objects := []privilege.Object{
		{Ref: t.folder.ref, Kind: privilege.Folder, Name: t.folder.name},
		{Ref: t.pool.ref, Kind: privilege.Pool, Name: t.pool.name},
		{Ref: t.datastore.ref, Kind: privilege.Datastore, Name: t.datastore.name},
		{Ref: t.network.ref, Kind: privilege.Network, Name: t.network.name},
		{Ref: t.cluster.ref, Kind: privilege.Cluster, Name: t.cluster.name},
	}
	if t.config.Allow.Maintenance {
		hosts, err := t.hosts(ctx)
		if err != nil {
			return err
		}
		for _, h := range hosts {
			objects = append(objects, privilege.Object{Ref: h.ref, Kind: privilege.Host, Name: h.name})
		}
	}
	for _, name := range t.config.TemplateNames() {
		if t.builder.templates.file(name) {
			objects = append(objects, privilege.Object{Ref: t.folder.ref, Kind: privilege.Import, Name: t.folder.name})
			if err := t.config.CheckTemplateFile(name); err != nil {
				return err
			}
			continue
		}
		from, err := t.builder.templates.get(ctx, name)
		if err != nil {
			return err
		}
		objects = append(objects, privilege.Object{Ref: from.ref, Kind: privilege.Template, Name: from.name})
	}
	if err := privilege.Check(ctx, t.vc, objects); err != nil {
		return err
	}
	t.privileged = true
	return nil
}
