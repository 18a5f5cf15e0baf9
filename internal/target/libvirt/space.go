package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// libvirt says of a pool how much was free when it last read the pool, and reads it neither by itself nor when somebody asks: volumes
// that take space as guests write, and whatever else lies on the same storage, do not show. So whoever wants to know has it read anew.

// spaceLimit bounds each call of a look at a pool. It is about what a host needs that has as many volumes as there may be; one that
// is switched off is not worth waiting for.
const spaceLimit = 8 * time.Second

// errVolumesMade: libvirt does not read a pool while volumes are being made in it, and whoever makes them is not to wait for a look.
var errVolumesMade = errors.New("volumes are being made")

// NodeSpace returns how much room there is in the node's pool.
func (t *Target) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	if err := t.usable(ctx); err != nil {
		return target.Space{}, err
	}
	n, err := t.node(nodeID)
	if err != nil {
		return target.Space{}, err
	}
	p, err := n.freshPool(ctx)
	if err != nil {
		return target.Space{}, fmt.Errorf("read the space of pool %q: %w", n.pool, err)
	}
	return target.Space{
		Storage: t.storage(n, p), Place: fmt.Sprintf("pool %q", p.Name), FreeBytes: p.Available, TotalBytes: p.Capacity,
	}, nil
}

// freshPool returns the node's pool with the free space of now. Each call is made once: what fails now may be asked again later.
func (n *node) freshPool(ctx context.Context) (pool, error) {
	if !n.files.TryLock() {
		return pool{}, fmt.Errorf("node %q: %w", n.id, errVolumesMade)
	}
	err := n.refresh(ctx, n.pool, spaceLimit)
	n.files.Unlock()
	if err != nil {
		return pool{}, err
	}
	text, err := n.run(ctx, call{args: []string{"pool-dumpxml", "--pool=" + n.pool}, limit: spaceLimit})
	if err != nil {
		return pool{}, err
	}
	return n.parsePool(n.pool, text)
}

// refresh has libvirt read the node's pool anew. libvirt stops a pool that it could not read and leaves it so, and then nothing can be
// made in it or removed from it: a moment's fault of the storage must not do that to everybody who uses the pool because we looked.
// The caller holds files.
func (n *node) refresh(ctx context.Context, pool string, limit time.Duration) error {
	if err := n.revive(ctx, pool); err != nil {
		return err
	}
	if _, err := n.reach(ctx, limit); err != nil {
		return fmt.Errorf("node %q: %w", n.id, err) // libvirt was asked nothing, so it has stopped nothing
	}
	_, err := n.run(ctx, call{args: []string{"pool-refresh", "--pool=" + pool}, limit: limit})
	if err == nil || isBusy(err) || said(err, "is not active", "failed to connect") {
		return err
	}
	n.halted.Store(true)
	return errors.Join(err, n.revive(context.WithoutCancel(ctx), pool))
}

// revive starts the node's pool where a refresh of ours may have stopped it, and only there.
func (n *node) revive(ctx context.Context, pool string) error {
	if !n.halted.Load() {
		return nil
	}
	_, err := n.run(ctx, call{args: []string{"pool-start", "--pool=" + pool}, limit: spaceLimit})
	if err != nil && !said(err, "already active") {
		return fmt.Errorf("start pool %q, which libvirt stopped because it could not read it: %w", n.pool, err)
	}
	n.halted.Store(false)
	return nil
}
