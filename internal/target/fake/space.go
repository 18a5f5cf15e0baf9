package fake

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
)

// NodeSpace tells of the one storage that all nodes share. A node that is off tells nothing.
func (t *Target) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	if ctx.Err() != nil {
		return target.Space{}, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.nodeIsOn(nodeID); err != nil {
		return target.Space{}, err
	}
	return target.Space{Storage: "imagined", Place: "the imagined storage", FreeBytes: t.freeBytes(), TotalBytes: capacityBytes}, nil
}

// Fill lets somebody else write until so many bytes are free.
func (t *Target) Fill(leftBytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.foreign += t.freeBytes() - leftBytes
}

// freeBytes counts disks in full. The caller holds the lock.
func (t *Target) freeBytes() int64 {
	free := capacityBytes - t.foreign
	for _, m := range t.machines {
		for _, d := range m.vm.Disks {
			free -= d.SizeBytes
		}
	}
	return max(0, free)
}
