package hammerdb

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

var (
	errTooLong  = errors.New("HammerDB did not end by itself after its test")
	errNoResult = errors.New("HammerDB printed no result")
)

// following listens to a running HammerDB until it has ended.
type following struct {
	*instance
	axis    program.Axis
	out     *program.Recorder
	hear    func() // takes what HammerDB has said
	until   int64  // when it is ended; 0: it ends by itself
	known   int64  // up to when all operations are known; 0: up to the present
	stopped bool   // ended by a signal, because its time is over or it was cancelled
}

// follow returns how the process ended.
func (f *following) follow(ctx context.Context) error {
	process := f.call.process
	stop := &program.Stopper{Process: process, Signal: syscall.SIGTERM, Grace: stopGrace}
	defer stop.End()
	tick := time.NewTicker(min(lookEvery, f.out.Period()/2))
	defer tick.Stop()
	cancelled, lost := ctx.Done(), (<-chan struct{})(f.call.isLost)
	for {
		select {
		case <-process.Done():
			f.hear()
			return process.Wait()
		case <-lost: // the load fails, whatever other users do
			lost = nil
			stop.Begin()
		case <-tick.C:
			f.hear()
			now := f.axis.Now()
			f.out.Effort(process.UsedCPU(), process.Effort(), now)
			f.release(now)
			if f.until > 0 && now >= f.until && !f.stopped {
				f.stopped = true
				stop.Begin()
			}
		case <-cancelled:
			cancelled, f.stopped = nil, true
			stop.Begin()
		}
	}
}

// release delivers the intervals that are known. Those of which HammerDB says nothing wait for a while.
func (f *following) release(now int64) {
	until := now - int64(lookEvery)
	if f.known > 0 {
		until = min(until, max(f.known, now-int64(toldMax)))
	}
	f.out.Release(until)
}

// toldMax is how long an interval waits for HammerDB's transaction counter.
const toldMax = 3 * counterSeconds * time.Second
