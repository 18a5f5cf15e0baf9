package target

import (
	"context"
	"time"
)

// Observer is called when a provider begins an operation on one VM, and returns a function that is called at its end, with
// its error. It may be called from several goroutines at the same time.
type Observer func(vm string) (ended func(err error))

type observerKey struct{}

// WithObserver notifies o of each VM that a call with the context acts on. A call for many VMs processes several at a time,
// so that only the provider knows how long each one took; like httptrace, this does not change the operation.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type powerlessKey struct{}

// WithPowerless calls heard for each VM that a provider found powered off, with the time, before powering it on: until then
// no other party, such as a platform that restarts VMs, can have started it. heard may be called from several goroutines at
// the same time.
func WithPowerless(ctx context.Context, heard func(vm string, at time.Time)) context.Context {
	return context.WithValue(ctx, powerlessKey{}, heard)
}

// Powerless reports to the context's listener that a VM was powered off at a given time.
func Powerless(ctx context.Context, vm string, at time.Time) {
	if heard, ok := ctx.Value(powerlessKey{}).(func(string, time.Time)); ok && heard != nil {
		heard(vm, at)
	}
}

// PowerChange is a change of a node's power state.
type PowerChange struct {
	Sent time.Time // the first command
	// Seen is when the requested state was first read, Before the last time when it was not yet: the change happened in
	// between.
	Seen, Before time.Time
}

type powerChangeKey struct{}

// WithPowerChange calls heard once when a node reaches the requested state, before earlier listeners. The state may still
// change afterwards.
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
