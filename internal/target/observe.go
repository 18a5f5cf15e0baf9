package target

import (
	"context"
	"time"
)

// Observer hears when a provider begins an operation on one VM, and returns what is to be called when that is over, with its error.
// It may be called from several goroutines at once.
type Observer func(vm string) (ended func(err error))

type observerKey struct{}

// WithObserver lets o hear of each VM that a call with the context acts on. A call for many VMs does some of them at a time,
// so that only the provider knows how long one took; like httptrace, this changes nothing of what is done.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

type powerlessKey struct{}

// WithPowerless lets heard hear of each VM that a provider found without power, at a moment, before it powers it on: until then
// nobody else, such as a platform that restarts VMs, can have started it. It may be called from several goroutines at once.
func WithPowerless(ctx context.Context, heard func(vm string, at time.Time)) context.Context {
	return context.WithValue(ctx, powerlessKey{}, heard)
}

// Powerless tells whoever listens that a VM had no power at a moment.
func Powerless(ctx context.Context, vm string, at time.Time) {
	if heard, ok := ctx.Value(powerlessKey{}).(func(string, time.Time)); ok && heard != nil {
		heard(vm, at)
	}
}

// PowerChange is how a node got another state of its power.
type PowerChange struct {
	Sent time.Time // the first command
	// Seen is when the state was first read that was asked for, Before the last moment at which it was not known to be so: the change
	// came in between.
	Seen, Before time.Time
}

type powerChangeKey struct{}

// WithPowerChange lets heard hear, once, when a node has got the state that was asked for, before whoever listened already. That it
// stays is not said.
func WithPowerChange(ctx context.Context, heard func(PowerChange)) context.Context {
	outer := ctx
	return context.WithValue(ctx, powerChangeKey{}, func(c PowerChange) {
		heard(c)
		TellPowerChange(outer, c)
	})
}

// TellPowerChange tells whoever listens of a change of power.
func TellPowerChange(ctx context.Context, c PowerChange) {
	if heard, ok := ctx.Value(powerChangeKey{}).(func(PowerChange)); ok && heard != nil {
		heard(c)
	}
}

// Observe tells whoever listens that a provider begins to act on a VM. The function that it returns is never nil.
func Observe(ctx context.Context, vm string) (ended func(err error)) {
	if o, ok := ctx.Value(observerKey{}).(Observer); ok && o != nil {
		if ended := o(vm); ended != nil {
			return ended
		}
	}
	return func(error) {}
}
