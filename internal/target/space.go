package target

import "context"

// Space is the current size and free space of one storage.
type Space struct {
	// Storage identifies it to programs: nodes with the same value share it. Place names it for people: `pool "default"`.
	Storage string
	Place   string
	// FreeBytes is what VMs and all others can still write, TotalBytes the whole size.
	// Inventory.Replication applies to both.
	FreeBytes  int64
	TotalBytes int64
}

// SpaceMeter reads the current free space of the storage for a node's VM disks, including what other users wrote. It waits
// only for the answer. A node that does not answer, or cannot read it now, is an error, which does not mean that space is
// short.
type SpaceMeter interface {
	NodeSpace(ctx context.Context, nodeID string) (Space, error)
}
