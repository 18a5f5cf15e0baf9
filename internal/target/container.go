package target

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// ContainerSettings are settings of the storage for VM disks, where the platform has them for all VMs at once. Nil and 0: not known, or
// not to be changed.
type ContainerSettings struct {
	Replication      int            `json:"replication_factor,omitempty"` // copies of each byte
	Compression      *bool          `json:"compression,omitempty"`
	CompressionDelay *time.Duration `json:"compression_delay_ns,omitempty"` // until written data is compressed; 0: at once
	ErasureCoding    *bool          `json:"erasure_coding,omitempty"`
}

// ContainerSetter changes settings of the storage for VM disks, which concern all its users, if the owner of the target has allowed it.
type ContainerSetter interface {
	// SetContainer makes the changes, after it has kept what the settings were before the first one. What the platform does with
	// existing data in the background may take hours and is not awaited.
	SetContainer(ctx context.Context, tag Tag, s ContainerSettings) error
	// RestoreContainer makes the settings as they were before the run changed any. Where it changed none it does nothing.
	RestoreContainer(ctx context.Context, tag Tag) error
}

// ContainerForbidden refuses to change settings of the storage.
func ContainerForbidden() error {
	return &diag.Error{
		Code: "target-container-forbidden", Exit: diag.ExitRefused,
		Message: "change settings of the storage container: the target file does not allow it",
		Hint:    `write "allow: {container_settings: true}" in the target file: the settings concern all users of the container`,
	}
}
