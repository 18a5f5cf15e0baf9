package target

import (
	"context"

	"github.com/braggdev/bragg/internal/lease"
)

// Locker is a target that only one controller at a time can use, wherever controllers run: the lock is on the target. A
// target without this interface exists in one process only. If the lock is a SharedLock, several controllers may use the
// target, but none of them can cut what the others use.
type Locker interface {
	// Lock locks the target for a run, or returns a *lease.HeldError. Hosts that do not answer are left out until they do;
	// any other error means that no host answered.
	Lock(ctx context.Context, h lease.Holder) (Lock, error)
}

// Lock is a lock on a target. It is released automatically when its holder dies: at once if that can be detected, else
// after lease.Life.
type Lock interface {
	// Fence is greater than that of every earlier lock.
	Fence() uint64
	// Lost reports another holder, which is only possible if this one was disconnected for longer than lease.Life. It may
	// be nil.
	Lost() <-chan lease.Holder
	Unlock() error
}

// RenewedLock is a Lock of several machines, some of which may not have answered when it was taken.
type RenewedLock interface {
	Lock
	// Renew locks those that answer now. It returns a *lease.HeldError if another holder has one.
	Renew(ctx context.Context) error
}

var _ RenewedLock = (*lease.Group)(nil)

// SharedLock is a Lock that others may hold at the same time.
type SharedLock interface {
	Lock
	// Meetings reports other holders, with begin and end.
	Meetings() <-chan lease.Meeting
}
