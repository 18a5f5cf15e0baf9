package client

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/clock"
)

// axis places what an agent measured by its own uptime on the run's axis. Both clocks are monotonic; they differ by an offset that
// changes slowly, by at most 100 ppm where both machines keep time, and at once where a VM was paused or moved.
//
// Each exchange bounds the offset: the truth lies within half the trip of what was measured. The axis moves only as far as that
// makes necessary, so that noise moves nothing and drift is followed to within the error of the latest exchange.
type axis struct {
	zero time.Time // of the run; zero: the axis is not used

	mu    sync.Mutex
	marks []mark // rising
}

// mark is what was known at one moment.
type mark struct {
	uptime int64 // of the agent
	shift  int64 // run's axis minus uptime
}

// marksMax bounds the memory of offsets. One is added with each exchange, of which a run makes one in 10 seconds and some at the
// start of each load: an agent that was cut off for as long as it keeps intervals is placed by what was known then.
const marksMax = 1024

func (a *axis) add(r clock.Reading) {
	if a.zero.IsZero() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	shift, bound := int64(r.At.Sub(a.zero))-r.MonoNanos, int64(r.Trip/2)
	if n := len(a.marks); n > 0 {
		last := a.marks[n-1]
		if r.MonoNanos <= last.uptime {
			return
		}
		shift = min(max(last.shift, shift-bound), shift+bound)
	}
	if len(a.marks) >= marksMax {
		a.marks = append(a.marks[:0], a.marks[marksMax/2:]...)
	}
	a.marks = append(a.marks, mark{r.MonoNanos, shift})
}

// zeroUptime returns the agent's uptime at the zero of the run's axis, as far as known now.
func (a *axis) zeroUptime() (nanos int64, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.marks) == 0 {
		return 0, false
	}
	return -a.marks[len(a.marks)-1].shift, true
}

// place returns where on the run's axis the agent's uptime lies.
func (a *axis) place(uptime int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.marks)
	if n == 0 {
		return uptime
	}
	i := n - 1
	for i > 0 && a.marks[i].uptime > uptime {
		i--
	}
	m := a.marks[i]
	if i == n-1 || uptime <= m.uptime {
		return uptime + m.shift
	}
	next := a.marks[i+1]
	part := float64(uptime-m.uptime) / float64(next.uptime-m.uptime)
	return uptime + m.shift + int64(part*float64(next.shift-m.shift))
}

// placer places the intervals of one workload, one behind the other: what follows without a gap on the agent's clock does so on the
// run's axis.
type placer struct {
	axis  *axis
	zero  int64 // uptime that the workload's own axis counts from
	known bool  // there was an interval before
	raw   int64 // its end on the workload's axis
	end   int64 // and on the run's
}

// stretch places one interval.
func (p *placer) stretch(start, length int64) (placedStart, placedLength int64) {
	placedStart = p.axis.place(start + p.zero)
	if p.known && (start == p.raw || placedStart < p.end) {
		placedStart = p.end
	}
	end := max(placedStart, p.axis.place(start+length+p.zero))
	p.known, p.raw, p.end = true, start+length, end
	return placedStart, end - placedStart
}

// Clock has the offsets of an agent's clocks from the run's axis.
type Clock struct {
	At time.Time // here
	// Wall is how far the agent's wall clock is ahead of the run's: the wall time of the axis' zero and what has passed
	// since by our monotonic clock.
	Wall time.Duration
	// Standstill is how much less the agent's monotonic clock has counted than ours, up to a constant.
	Standstill time.Duration
	// Own is how far our own wall clock was stepped since the axis' zero.
	Own   time.Duration
	Error time.Duration // of Wall and Standstill: half the trip
}

// AskClock compares the agent's clocks with the run's. The client must have a Zero.
func (c *Client) AskClock(ctx context.Context) (Clock, error) {
	_, best, err := c.fastest(ctx)
	if err != nil {
		return Clock{}, err
	}
	zero := c.options.Zero
	passed := best.At.Sub(zero)
	own := time.Duration(best.At.UnixNano()-zero.UnixNano()) - passed
	return Clock{
		At: best.At, Wall: best.Offset + own, Standstill: passed - time.Duration(best.MonoNanos), Own: own, Error: best.Trip / 2,
	}, nil
}
