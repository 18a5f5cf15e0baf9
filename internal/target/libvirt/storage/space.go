package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// libvirt reports the free space of a pool as of its last refresh, and does not refresh by itself: volumes that grow as guests
// write, and other files on the same storage, do not show. So the pool is refreshed before its space is read.

// spaceLimit bounds each call of a reading. A host with the largest number of volumes needs that long; a host that is switched off
// is not worth waiting for.
const spaceLimit = 8 * time.Second

// ErrInUse: libvirt does not refresh a pool while volumes are being made in it, and a reading of space must not delay these.
var ErrInUse = errors.New("volumes are being made")

// Fresh returns the pool with its current free space. It does not retry: the caller can read again later.
func (s *Store) Fresh(ctx context.Context) (*Pool, error) {
	if !s.files.TryLock() {
		return nil, fmt.Errorf("node %q: %w", s.host.ID, ErrInUse)
	}
	err := s.refresh(ctx, spaceLimit)
	s.files.Unlock()
	if err != nil {
		return nil, err
	}
	text, err := s.host.Run(ctx, virsh.Call{Args: []string{"pool-dumpxml", "--pool=" + s.name}, Limit: spaceLimit})
	if err != nil {
		return nil, err
	}
	return s.parse(text)
}

// refresh makes libvirt reread the pool. libvirt stops a pool that it could not read and leaves it stopped, and then no volume can
// be made or removed: a short fault of the storage must not do that to everyone who uses the pool. The caller holds files.
func (s *Store) refresh(ctx context.Context, limit time.Duration) error {
	if err := s.revive(ctx); err != nil {
		return err
	}
	if _, err := s.host.Reach(ctx, limit); err != nil {
		return err // libvirt was not reached, so it has stopped nothing
	}
	_, err := s.host.Run(ctx, virsh.Call{Args: []string{"pool-refresh", "--pool=" + s.name}, Limit: limit})
	if err == nil || virsh.IsBusy(err) || virsh.Says(err, "is not active", "failed to connect") {
		return err
	}
	s.halted.Store(true)
	return errors.Join(err, s.revive(context.WithoutCancel(ctx)))
}

// revive starts the pool where a refresh of Bragg may have stopped it, and only there.
func (s *Store) revive(ctx context.Context) error {
	if !s.halted.Load() {
		return nil
	}
	_, err := s.host.Run(ctx, virsh.Call{Args: []string{"pool-start", "--pool=" + s.name}, Limit: spaceLimit})
	if err != nil && !virsh.Says(err, "already active") {
		return fmt.Errorf("start pool %q, which libvirt stopped because it could not read it: %w", s.name, err)
	}
	s.halted.Store(false)
	return nil
}
