package target

import "context"

// Observer hears when a provider begins an operation on one VM, and returns what is to be called when that is over, with its error.
// It may be called from several goroutines at once.
type Observer func(vm string) (ended func(err error))

type observerKey struct{}

// WithObserver lets o hear of each VM that a call with the context acts on. A call for many VMs does some of them at a time,
// so that only the provider knows how long one took; like httptrace, this changes nothing of what is done.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
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
