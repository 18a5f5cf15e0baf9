package local

import (
	"context"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

var _ target.Locker = (*Target)(nil)

// Lock locks a part of this machine until this process ends. Simulated power cuts affect only this target's own processes,
// so that several local targets may be in use; a target that can really cut the machine's power locks all of it.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	held, err := lease.Share(ctx, t.leases, h)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	if t.leases != "" { // only tests have other scopes; they do not mark the machine's own libvirt
		return held, nil
	}
	return marked{held, lease.Mark(ctx, h)}, nil
}

// marked is a locked part of this machine that is also marked in its libvirt.
type marked struct {
	*lease.Part
	unmark func()
}

// Unlock removes the mark and unlocks the part.
func (m marked) Unlock() error {
	m.unmark()
	return m.Part.Unlock()
}
