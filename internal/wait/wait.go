// Package wait waits for durations and periods until a context ends. It has no clock, and leaves no goroutines behind.
package wait

import (
	"context"
	"time"
)

// For waits for d, and returns the cause of ctx if that ends before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Outlasting returns a context that ends only d after ctx, with its cause: for what is brought to its end although its caller was
// cancelled. The caller calls end when it is over.
func Outlasting(ctx context.Context, d time.Duration) (longer context.Context, end context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if For(longer, d) == nil {
			cancel(context.Cause(ctx))
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}

// Every calls do after each period until ctx ends. After a call that takes longer than a period, the next follows immediately;
// further missed periods are skipped.
func Every(ctx context.Context, period time.Duration, do func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	onTicks(ctx, tick, do)
}

// NowAndEvery also calls do immediately: the periods begin with the start of that call, however long it takes.
func NowAndEvery(ctx context.Context, period time.Duration, do func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	do()
	onTicks(ctx, tick, do)
}

func onTicks(ctx context.Context, tick *time.Ticker, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
