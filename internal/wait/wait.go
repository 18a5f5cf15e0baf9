// Package wait lets time pass until a context ends. It keeps no clock of its own and starts no goroutine.
package wait

import (
	"context"
	"time"
)

// For waits for d, and returns the cause of ctx where that ends before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Every calls do after each period until ctx ends. After a call that takes longer than a period the next follows at once, but no
// more than that one is made up for.
func Every(ctx context.Context, period time.Duration, do func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	onTicks(ctx, tick, do)
}

// NowAndEvery calls do at once as well: the periods begin with that call, however long it takes.
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
