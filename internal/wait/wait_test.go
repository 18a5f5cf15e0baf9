package wait_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := wait.For(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		began = time.Now()
		if err := wait.For(ctx, time.Minute); !errors.Is(err, reason) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := wait.For(ctx, 0); !errors.Is(err, reason) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		calls := 0
		wait.Every(ctx, time.Second, func() { calls++ })
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
	})
}

// The first call takes from its period, and does not move those that follow.
func TestNowAndEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began := time.Now()
		var calls []time.Duration
		wait.NowAndEvery(ctx, time.Second, func() {
			calls = append(calls, time.Since(began))
			time.Sleep(300 * time.Millisecond)
		})
		if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(calls, want) {
			t.Errorf("calls after %v, want %v", calls, want)
		}
	})
}

// After a call that takes longer than its period one more follows at once, and not one for each period that was missed.
func TestEveryAfterALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 6500*time.Millisecond)
		defer cancel()
		began := time.Now()
		var calls []time.Duration
		wait.Every(ctx, time.Second, func() {
			calls = append(calls, time.Since(began))
			if len(calls) == 1 {
				time.Sleep(3500 * time.Millisecond)
			}
		})
		want := []time.Duration{time.Second, 4500 * time.Millisecond, 5 * time.Second, 6 * time.Second}
		if !slices.Equal(calls, want) {
			t.Errorf("calls after %v, want %v", calls, want)
		}
	})
}

func TestOutlasting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(time.Second, func() { cancel(reason) })
		longer, end := wait.Outlasting(ctx, time.Minute)
		<-longer.Done()
		if took := time.Since(began); took != 61*time.Second || !errors.Is(context.Cause(longer), reason) {
			t.Errorf("it ended after %v with %v", took, context.Cause(longer))
		}
		end()
		longer, end = wait.Outlasting(t.Context(), time.Minute)
		if end(); longer.Err() == nil {
			t.Error("it outlasts its end")
		}
	})
}
