package target_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

func TestEachReturnsAllErrors(t *testing.T) {
	err := target.Each(t.Context(), 40, func(i int) error {
		if i%20 == 3 {
			return fmt.Errorf("vm %d", i)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "vm 3") || !strings.Contains(err.Error(), "vm 23") {
		t.Errorf("got %v", err)
	}
	if err := target.Each(t.Context(), 0, nil); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
}

func TestEachStartsNothingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		var calls, most, now atomic.Int64
		err := target.Each(ctx, 100, func(i int) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			if calls.Add(1) == 20 {
				stop(reason)
			}
			return nil
		})
		if !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
		if n := calls.Load(); n < 20 || n > 36 {
			t.Errorf("%d calls, want those that were under way when the end came", n)
		}
		if n := most.Load(); n < 2 || n > 8 {
			t.Errorf("%d calls at once", n)
		}
	})
}
