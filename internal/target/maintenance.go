package target

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

// Maintainer takes nodes out of use in an orderly way, as for an upgrade, if the owner of the target has allowed it.
type Maintainer interface {
	// EnterMaintenance blocks until the platform has moved every VM from the node, or evicted it, and starts no other there. It
	// concerns the VMs of all users.
	EnterMaintenance(ctx context.Context, nodeID string) error
	ExitMaintenance(ctx context.Context, nodeID string) error
}

// MaintenanceForbidden refuses to take a node out of use.
func MaintenanceForbidden(nodeID string) error {
	return &diag.Error{
		Code: "maintenance-not-allowed", Exit: diag.ExitRefused,
		Message: fmt.Sprintf("put node %q into maintenance: the target file does not allow it", nodeID),
		Hint:    `write "allow: {maintenance: true}" in the target file: VMs of all users are moved away`,
	}
}

// Reverter returns the disks of VMs to a snapshot.
type Reverter interface {
	// RevertVMs gives the disks of VMs that are off the contents that they had at the latest snapshot of that name. Snapshots
	// stay. A VM that is on, or has no such snapshot, is an error.
	RevertVMs(ctx context.Context, tag Tag, vms []VM, name string) error
}
