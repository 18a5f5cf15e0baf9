package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/disks"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// snapshotter is the capability of a target whose cluster has snapshots.
type snapshotter struct {
	hosts  *cluster
	taker  *disks.Snapshots
	claims *disks.Claims
	run    runner
	locks  *target.KeyLocks
}

var (
	_ target.Snapshotter = (*snapshotter)(nil)
	_ target.Reverter    = (*snapshotter)(nil)
)

// SnapshotVMs takes snapshots of the disks of VMs, of each VM one disk after the other. They end with their VM.
func (s *snapshotter) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	list, err := s.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("snapshot VMs: %w", err)
	}
	return onEach(ctx, "snapshot", list, func(r object.Record) error {
		_, err := s.taker.Take(ctx, r, object.OwnerOf(tag), name)
		return err
	})
}

// RevertVMs replaces the claims of VMs that are off by ones from their latest snapshots of that name. Snapshots stay.
func (s *snapshotter) RevertVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	list, err := s.hosts.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("revert VMs: %w", err)
	}
	return onEach(ctx, "revert", list, func(r object.Record) error {
		defer s.locks.Lock(r.VM.ID)()
		states, err := s.run.states(ctx, r.Mark)
		if err != nil {
			return err
		}
		if states[r.VM.ID].power == target.PowerOn {
			return errors.New("it is on")
		}
		if err := s.run.remove(ctx, r); err != nil { // what has ended uses its claims
			return err
		}
		names, err := s.taker.Latest(ctx, r, name)
		if err != nil {
			return err
		}
		if err := s.claims.Remove(ctx, r); err != nil {
			return err
		}
		return s.claims.Make(ctx, r, object.OwnerOf(tag), disks.Sources(names))
	})
}
