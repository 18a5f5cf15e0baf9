package vsphere

import (
	"context"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/leasevm"
)

// lock is the lease of the cluster.
type lock struct {
	site   *site
	sought atomic.Bool // a run has begun, or what it left is removed
}

// Lock takes the lease of the cluster.
func (l *lock) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	l.sought.Store(true)
	if err := l.site.usable(ctx); err != nil {
		return nil, err
	}
	group, err := lease.Together(ctx, h, []lease.Place{l.site.lease()})
	if err != nil {
		return nil, err
	}
	return group, nil
}

func (t *site) lease() leasevm.Place {
	return leasevm.Place{
		VC: t.vms(), Cluster: t.cluster.ref, Folder: t.folder.ref, Pool: t.pool.ref, ClusterName: t.cluster.name, Datastore: t.datastore.name,
	}
}

// Identity is the vCenter and the cluster in it; see target.Identified.
func (l *lock) Identity(ctx context.Context) (string, error) {
	if err := l.site.usable(ctx); err != nil {
		return "", err
	}
	return l.site.vc.ServiceContent.About.InstanceUuid + "/" + l.site.cluster.ref.Value, nil
}
