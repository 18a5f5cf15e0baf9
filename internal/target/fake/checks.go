package fake

import (
	"context"
	"fmt"
)

// DatastoreVisible returns nil for every node that is on: an imagined datastore is seen from everywhere.
func (t *Target) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.nodeIsOn(nodeID); err != nil {
		return fmt.Errorf("look for datastore %q: %w", datastore, err)
	}
	return nil
}

// WriteCacheEmpty returns true: nothing is cached here.
func (t *Target) WriteCacheEmpty(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return true, nil
}
