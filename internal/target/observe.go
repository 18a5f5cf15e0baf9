package target

import (
	"context"
	"time"
)

// Observer hears when a provider begins an operation on one VM, and returns what is to be called when that is over, with its error.
// It may be called from several goroutines at once.
type Observer func(vm string) (ended func(err error))

type observerKey struct{}

// WithObserver notifies o of each VM that a call with the context acts on. A call for many VMs does some of them at a time,
// so that only the provider knows how long one took; like httptrace, this changes nothing of what is done.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type powerlessKey struct{}

// WithPowerless has heard called for each VM that a provider found powered off, with the time, before powering it on: until
// then no other party, such as a platform that restarts VMs, can have started it. heard may be called from several
// goroutines at once.
func WithPowerless(ctx context.Context, heard func(vm string, at time.Time)) context.Context {
	return context.WithValue(ctx, powerlessKey{}, heard)
}

// Powerless reports to the context's listener that a VM was powered off at a moment.
func Powerless(ctx context.Context, vm string, at time.Time) {
	if heard, ok := ctx.Value(powerlessKey{}).(func(string, time.Time)); ok && heard != nil {
		heard(vm, at)
	}
}

// PowerChange is how a node got another state of its power.
type PowerChange struct {
	Sent time.Time // the first command
	// Seen is when the requested state was first read, Before the last moment at which it had not been read: the change
	// happened in between.
	Seen, Before time.Time
}

type powerChangeKey struct{}

// WithPowerChange has heard called once when a node reaches the requested state, ahead of earlier listeners. The state may
// still change afterwards.
func WithPowerChange(ctx context.Context, heard func(PowerChange)) context.Context {
	outer := ctx
	return context.WithValue(ctx, powerChangeKey{}, func(c PowerChange) {
		heard(c)
		TellPowerChange(outer, c)
	})
}

// TellPowerChange reports a change of power to the context's listeners.
func TellPowerChange(ctx context.Context, c PowerChange) {
	if heard, ok := ctx.Value(powerChangeKey{}).(func(PowerChange)); ok && heard != nil {
		heard(c)
	}
}

// Observe reports to the context's listener that a provider begins to act on a VM. The returned function is never nil.
func Observe(ctx context.Context, vm string) (ended func(err error)) {
	if o, ok := ctx.Value(observerKey{}).(Observer); ok && o != nil {
		if ended := o(vm); ended != nil {
			return ended
		}
	}
	return func(error) {}
}
