package kube

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

// Targets with what the cluster and the target file offer beside Target: snapshots, power of nodes, and with VMs of KubeVirt logins and
// migration.
type (
	targetWithSnapshots struct {
		*Target
		*snapshotter
	}
	poweredWithSnapshots struct {
		powered
		*snapshotter
	}

	virtual struct {
		*Target
		*guests
	}
	virtualSnapshots struct {
		virtual
		*snapshotter
	}
	virtualPower struct {
		virtual
		*bmc.HangingUp
	}
	virtualPowerSnapshots struct {
		virtual
		*bmc.HangingUp
		*snapshotter
	}
	moving struct {
		virtual
		*migrator
	}
	movingSnapshots struct {
		virtual
		*migrator
		*snapshotter
	}
	movingPower struct {
		virtual
		*migrator
		*bmc.HangingUp
	}
	movingPowerSnapshots struct {
		virtual
		*migrator
		*bmc.HangingUp
		*snapshotter
	}
)

// compose makes the target of what the cluster and the target file offer.
func compose(ctx context.Context, t *Target) (target.Target, error) {
	offered, err := t.builder.snapshots.Offered(ctx)
	if err == nil {
		err = t.metrics.choose(ctx)
	}
	if err != nil {
		t.client.Close()
		return nil, err
	}
	locks := t.operations.locks
	snaps := &snapshotter{t.cluster, t.builder.snapshots, t.builder.claims, t.operations.run, locks}
	if m := t.builder.machines; m != nil {
		v := virtual{t, &guests{t.cluster, m, t.agents}}
		if t.cluster.settings.virt.Migratable() {
			return composeMoving(v, &migrator{t.cluster, m, locks}, snaps, offered), nil
		}
		return composeVirtual(v, snaps, offered), nil
	}
	switch {
	case t.power.bmcs != nil && offered:
		return poweredWithSnapshots{t.powered(), snaps}, nil
	case t.power.bmcs != nil:
		return t.powered(), nil
	case offered:
		return targetWithSnapshots{t, snaps}, nil
	}
	return t, nil
}

func composeVirtual(v virtual, snaps *snapshotter, offered bool) target.Target {
	switch {
	case v.power.bmcs != nil && offered:
		return virtualPowerSnapshots{v, v.powered().HangingUp, snaps}
	case v.power.bmcs != nil:
		return virtualPower{v, v.powered().HangingUp}
	case offered:
		return virtualSnapshots{v, snaps}
	}
	return v
}

func composeMoving(v virtual, m *migrator, snaps *snapshotter, offered bool) target.Target {
	switch {
	case v.power.bmcs != nil && offered:
		return movingPowerSnapshots{v, m, v.powered().HangingUp, snaps}
	case v.power.bmcs != nil:
		return movingPower{v, m, v.powered().HangingUp}
	case offered:
		return movingSnapshots{v, m, snaps}
	}
	return moving{v, m}
}
