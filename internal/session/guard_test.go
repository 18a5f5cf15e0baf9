package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

func TestGuardFloorFollowsTheSize(t *testing.T) {
	for _, c := range []struct{ total, want int64 }{
		{64 * unit.MiB, 16 * unit.MiB}, // at least what undo and sealing write
		{10 * unit.GiB, 10 * unit.GiB / 100 * 2},
		{100 * unit.TiB, unit.GiB},
	} {
		if got := guardFloor(c.total); got != c.want {
			t.Errorf("floor of %d: %d, want %d", c.total, got, c.want)
		}
	}
}

func TestGuardStopsOnceSpaceRunsLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		readings := 0
		g := guard{place: "/data", space: func(string) (int64, int64, error) {
			readings++
			switch {
			case readings == 2:
				return 0, 0, errors.New("busy") // must not stop the run
			case time.Since(start) < 5*time.Second:
				return 50 * unit.GiB, 100 * unit.GiB, nil
			}
			return unit.GiB / 2, 100 * unit.GiB, nil
		}}
		var stops []error
		g.watch(t.Context(), func(err error) { stops = append(stops, err) })
		if len(stops) != 1 || !strings.Contains(stops[0].Error(), "512 MiB are free") {
			t.Fatalf("stops: %v", stops)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("stopped after %v", waited)
		}
	})
}

func TestGuardEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g := guard{place: "/data", space: func(string) (int64, int64, error) { return unit.TiB, 2 * unit.TiB, nil }}
		g.watch(ctx, func(err error) { t.Errorf("stopped: %v", err) })
	})
}
