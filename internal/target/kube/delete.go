package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/disks"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// remover finds and removes VMs.
type remover struct {
	cluster   *cluster
	claims    *disks.Claims
	snapshots *disks.Snapshots
	run       runner
	agents    *agents
	locks     *target.KeyLocks
}

// Owned lists the VMs with the tag by their records, and their power by their pods.
func (r *remover) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := errors.Join(tag.Check(), r.cluster.usable(ctx)); err != nil {
		return nil, err
	}
	list, err := r.cluster.owned(ctx, tag.Mark())
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	states, err := r.run.states(ctx, tag.Mark())
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	vms := make([]target.VM, 0, len(list))
	for _, one := range list {
		s, ok := states[one.VM.ID]
		if !ok {
			s = state{power: target.PowerOff}
		}
		vms = append(vms, current(one, s))
	}
	slices.SortFunc(vms, byName)
	return vms, nil
}

// Delete removes VMs: pods, snapshots, claims, identities, and their records at last. An object of a VM that carries another mark
// stays, and is an error.
func (r *remover) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	list, err := r.cluster.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	return onEach(ctx, "delete", list, func(one object.Record) error {
		defer r.locks.Lock(one.VM.ID)()
		return r.remove(ctx, one)
	})
}

func (r *remover) remove(ctx context.Context, one object.Record) error {
	r.agents.link.HangUp(one.VM.ID)
	if err := r.run.remove(ctx, one); err != nil {
		return err
	}
	r.agents.link.HangUp(one.VM.ID)
	if err := r.snapshots.Remove(ctx, one); err != nil {
		return err
	}
	if err := r.claims.Remove(ctx, one); err != nil {
		return err
	}
	if err := r.run.removeSecret(ctx, one); err != nil {
		return err
	}
	if err := r.cluster.client.Delete(ctx, api.ConfigMaps, one.VM.ID, one.UID, -1); err != nil {
		return err
	}
	return r.cluster.records.Await(ctx, one.VM.ID, func(o *api.Seen[corev1.ConfigMap]) (bool, error) {
		return o == nil || o.Object.UID != one.UID, nil
	})
}
