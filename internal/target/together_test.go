package target_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// Members reach their command at one moment, whatever each takes to prepare; one that does not come is not waited for.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := target.NewGate(4), time.Now()
		at := make([]time.Duration, 3)
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				ctx, leave := target.WithGate(t.Context(), g)
				defer leave()
				time.Sleep(time.Duration(i) * time.Second)
				if i < len(at) { // the last one is refused
					target.Together(ctx)
					at[i] = time.Since(began)
				}
			})
		}
		wait.Wait()
		for i, d := range at {
			if d != 3*time.Second {
				t.Errorf("member %d went on after %v, want 3s", i, d)
			}
		}
	})
}

func TestGateOfOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := target.WithGate(t.Context(), target.NewGate(2))
		defer leave()
		began := time.Now()
		target.Together(ctx)
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("waited %v", d)
		}
		target.Together(t.Context()) // without a gate
	})
}
