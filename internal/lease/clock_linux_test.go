package lease

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The holder is on another machine, so that only its signs of life tell of it.
func elsewhere(renewed time.Duration) Holder {
	h := NewHolder("run-1", 0)
	h.Process.Boot, h.Renewed = "another machine", time.Now().Add(-renewed)
	return h
}

func TestExpiryByAnotherClock(t *testing.T) {
	for name, c := range map[string]struct {
		renewed time.Duration // how long ago, by our clock
		looked  func(*clocked)
		taken   bool
		waits   bool
	}{
		"fresh":                        {renewed: time.Minute},
		"its clock is ahead":           {renewed: -24 * time.Hour},
		"cut off for a while":          {renewed: Life},
		"dead":                         {renewed: Life + skewMax + time.Second, taken: true, waits: true},
		"alive, and our clock is late": {renewed: 24 * time.Hour, looked: func(c *clocked) { c.holder.Renewed = c.holder.Renewed.Add(RenewPeriod) }, waits: true},
		"given back meanwhile":         {renewed: 24 * time.Hour, looked: func(c *clocked) { c.looked = func(c *clocked) { c.holder = Holder{} } }, taken: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &clocked{holder: elsewhere(c.renewed), looked: c.looked}
				began := time.Now()
				g, err := Together(t.Context(), NewHolder("run-2", 0), []Place{p})
				if c.taken != (err == nil) || err != nil && !errors.As(err, new(*HeldError)) {
					t.Errorf("got %v", err)
				}
				if waited := time.Since(began) > 0; waited != c.waits {
					t.Errorf("it took %v", time.Since(began))
				}
				if g != nil {
					_ = g.Unlock()
				}
			})
		})
	}
}
