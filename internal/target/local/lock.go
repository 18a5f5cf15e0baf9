package local

import (
	"context"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

var _ target.Locker = (*Target)(nil)

// Lock takes a part of this machine, for as long as this process lives. Power cuts are simulated here and hit nothing but this
// target's own processes, so that several local targets may be in use; one that can really cut the machine's power takes it whole.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	held, err := lease.Share(ctx, t.leases, h)
	if err != nil {
		return nil, err // and no pointer in an interface
	}
	if t.leases != "" { // other scopes are those of tests, which leave the machine's own libvirt alone
		return held, nil
	}
	return marked{held, lease.Mark(ctx, h)}, nil
}

// marked is a part of this machine that its libvirt knows of.
type marked struct {
	*lease.Part
	unmark func()
}

// Unlock gives the part back.
func (m marked) Unlock() error {
	m.unmark()
	return m.Part.Unlock()
}
