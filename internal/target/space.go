package target

import "context"

// Space is how much room one storage has at this moment.
type Space struct {
	// Storage names it for programs: nodes for which this is the same share it. Place names it for people: `pool "default"`.
	Storage string
	Place   string
	// FreeBytes are those that VMs and all others can still write, TotalBytes those that there are. What Inventory.Replication says
	// of bytes holds here too.
	FreeBytes  int64
	TotalBytes int64
}

// SpaceMeter reads the current free space where a node keeps the disks of VMs, including what other users wrote. It waits
// for nothing but the answer. A node that does not answer, or cannot read it now, is an error, which says nothing about the
// space.
type SpaceMeter interface {
	NodeSpace(ctx context.Context, nodeID string) (Space, error)
}
