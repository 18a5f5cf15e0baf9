package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/virt"
)

// migrator moves VMs of KubeVirt whose disks can be attached to two nodes.
type migrator struct {
	hosts *cluster
	vms   *machines
	locks *target.KeyLocks
}

var _ target.Migrator = (*migrator)(nil)

// MigrateVMs moves VMs to another node: running ones by live migration, the others start there.
func (m *migrator) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	list, err := m.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	to, err := m.hosts.node(ctx, nodeID)
	if err == nil {
		if why := to.unready(); why != "" {
			err = fmt.Errorf("node %q %s", nodeID, why)
		}
	}
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	place := virt.Node{ID: nodeID, Host: nodeID}
	if to.seen != nil && to.seen.Labels[corev1.LabelHostname] != "" {
		place.Host = to.seen.Labels[corev1.LabelHostname]
	}
	return onEach(ctx, "migrate", list, func(r object.Record) error {
		defer m.locks.Lock(r.VM.ID)()
		if err := m.vms.virt.Migrate(ctx, r, object.OwnerOf(tag), place); err != nil {
			return err
		}
		return m.settle(ctx, r, object.OwnerOf(tag), nodeID)
	})
}

// settle makes a node the one where a VM starts: the record says so first.
func (m *migrator) settle(ctx context.Context, r object.Record, tag object.Owner, nodeID string) error {
	if r.VM.NodeID == nodeID {
		return nil
	}
	r.VM.NodeID = nodeID
	text, err := r.ConfigMap(tag)
	if err != nil {
		return err
	}
	text.OwnerReferences = nil // it is its own record's
	made, err := api.Update[corev1.ConfigMap](ctx, m.hosts.client, api.ConfigMaps, text)
	if err != nil {
		return err
	}
	err = m.hosts.records.Await(ctx, made.Name, func(o *api.Seen[corev1.ConfigMap]) (bool, error) {
		if o == nil {
			return false, fmt.Errorf("vm %q does not exist", r.VM.Name)
		}
		now, ok := object.ReadRecord(&o.Object)
		return ok && now.VM.NodeID == nodeID, nil
	})
	if err != nil {
		return err
	}
	return m.vms.virt.Place(ctx, r, nodeID)
}
