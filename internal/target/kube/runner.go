package kube

import (
	"context"
	"net"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// runner gives VMs power, by one kind of objects in the cluster: pods, or VMs of KubeVirt.
type runner interface {
	// start makes a VM run and waits until it does. What does not get that far is stopped again.
	start(ctx context.Context, r object.Record, tag object.Owner) error
	// stop cuts the power of a VM and waits until it has none.
	stop(ctx context.Context, r object.Record) error
	// remove stops a VM and removes everything that uses its disks.
	remove(ctx context.Context, r object.Record) error
	// removeSecret deletes the identity of an agent.
	removeSecret(ctx context.Context, r object.Record) error
	// states returns the power of all VMs with a mark, by id; those that were never started may be missing. An empty mark selects all.
	states(ctx context.Context, mark string) (map[string]state, error)
}

// waiter is something that runs until the client is closed.
type waiter interface{ Wait() }

// contact is how agents of VMs are reached.
type contact interface {
	// now is the power of a VM.
	now(ctx context.Context, id string) (state, error)
	// address is that of a VM, "" as long as it has none.
	address(ctx context.Context, id string) (string, error)
	// tunnel connects to a port of a VM through the API server.
	tunnel(ctx context.Context, id string, port int) (net.Conn, error)
}

// reporter reports what happens to VMs without this program.
type reporter interface {
	// report calls put for VMs with a mark until stop is called.
	report(ctx context.Context, mark string, put func(target.PlatformEvent)) (stop func(), err error)
}
