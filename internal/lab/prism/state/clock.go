package state

import (
	"sync/atomic"
	"time"
)

// shownClock is the clock of the cluster, which may be wrong.
type shownClock struct{ ahead atomic.Int64 } // nanoseconds before that of this machine

func (c *shownClock) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.ahead.Load())).UTC()
}

// Now is what the clock of the cluster shows.
func (p *base) Now() time.Time { return p.data.clock.now() }

// SetClock sets the clock of the cluster, ahead of that of this machine.
func (p *base) SetClock(ahead time.Duration) { p.data.clock.ahead.Store(int64(ahead)) }

// Now is what the clock of the cluster shows.
func (d *Data) Now() time.Time { return d.clock.now() }
