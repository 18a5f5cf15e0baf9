package target

import (
	"context"

	"github.com/braggdev/bragg/internal/lease"
)

// Locker is a target that lets one controller at a time work on it, wherever controllers run: the lock is where the target
// is. A target without it exists in one process alone. One whose lock is a SharedLock lets several work on it that cannot cut what
// the others use.
type Locker interface {
	// Lock takes the target for a run, or returns a *lease.HeldError. Hosts that do not answer are left out until they do;
	// an error of another kind means that none answered.
	Lock(ctx context.Context, h lease.Holder) (Lock, error)
}

// Lock is a target that is taken. It becomes free by itself when its holder dies: at once where that can be seen, else after
// lease.Life.
type Lock interface {
	// Fence is above that of every lock before.
	Fence() uint64
	// Lost tells of another holder, which there can only be when this one was cut off for longer than lease.Life. It may be nil.
	Lost() <-chan lease.Holder
	Unlock() error
}

// SharedLock is a Lock that others may have too.
type SharedLock interface {
	Lock
	// Meetings tells who has one, from when and until when.
	Meetings() <-chan lease.Meeting
}
