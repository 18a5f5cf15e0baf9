package local

import (
	"context"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

var _ target.Locker = (*Target)(nil)

// Lock takes this machine, for as long as this process lives.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	held, err := lease.Hold(ctx, t.options.Leases, h)
	if err != nil {
		return nil, err // and no pointer in an interface
	}
	return held, nil
}
