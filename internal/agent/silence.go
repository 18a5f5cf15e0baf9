package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/load"
)

// What becomes of a workload whose agent is silent. While it runs, it is waited for as long as agents are called: it goes on, and
// its intervals come later. Once it is to stop, that has a bound of its own, so that whoever stops it gets an answer:
//
//	stop ──▶ agent hears of it ──▶ ends within StopWithin, counted while it answers
//	     └─▶ silent for SilentFor ──▶ given up; should the agent come back, it is told to forget the workload

// ErrGone says, as an error of Redial, that there is no agent any more: its VM has stopped.
var ErrGone = errors.New("there is no agent any more")

// silence is for how long an agent has said nothing. What its machine says without it is nothing: a kernel accepts connections for
// programs that are frozen, and the library for HTTP/2 answers pings when all else in the agent hangs.
type silence struct {
	born  time.Time
	after *atomic.Int64 // born, until something was heard last, nanoseconds
}

func newSilence() silence { return silence{time.Now(), new(atomic.Int64)} }

func (s silence) heard() { s.after.Store(int64(time.Since(s.born))) }

func (s silence) lasts() time.Duration { return time.Since(s.born) - time.Duration(s.after.Load()) }

// giveUp notes that the agent is lost for good.
func (c *Client) giveUp(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = fmt.Errorf("%w: %w", load.ErrLost, err)
		c.markLost()
	}
	return c.gone
}

// promptly makes a request that an agent answers at once. One that does not hangs, however alive its connection looks: that is given
// up, and all that waits for it calls again.
func (c *Client) promptly(ctx context.Context, link *http.ClientConn, r request, into any) error {
	if c.options.Redial == nil {
		return c.callOver(ctx, link, r, into)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.options.AnswerWithin, errHangs)
	defer cancel()
	err := c.callOver(bounded, link, r, into)
	if ctx.Err() == nil && errors.Is(context.Cause(bounded), errHangs) {
		c.drop(link)
		return errHangs
	}
	return err
}

var errHangs = fmt.Errorf("%w: it takes connections and does not answer", load.ErrLost)

// drop closes a connection if it is still in use.
func (c *Client) drop(link *http.ClientConn) {
	c.mu.Lock()
	same, conn := c.link == link, c.conn
	c.mu.Unlock()
	if same && link != nil {
		_ = link.Close()
		_ = conn.Close()
	}
}

// orphan remembers a workload that was given up. The connection is of no use; over the next one the agent is told.
func (c *Client) orphan(path string) {
	c.mu.Lock()
	c.orphans = append(c.orphans, path)
	link := c.link
	c.mu.Unlock()
	c.drop(link)
}

// dropOrphans makes an agent that is back forget what was given up: it must not go on beside what comes next.
func (c *Client) dropOrphans(ctx context.Context, link *http.ClientConn) {
	c.mu.Lock()
	orphans := c.orphans
	c.orphans = nil
	c.mu.Unlock()
	for i, path := range orphans {
		err := c.callOver(ctx, link, request{http.MethodDelete, path, nil}, nil)
		if err != nil && !errors.Is(err, errForgotten) {
			c.mu.Lock()
			c.orphans = append(c.orphans, orphans[i:]...)
			c.mu.Unlock()
			return
		}
	}
}

// stopLook is how often a workload that is to stop is looked at.
const stopLook = 500 * time.Millisecond

// stop asks the agent to stop the workload, and abandons everything when that takes too long.
func (f *follower) stop(work context.Context, abandon context.CancelCauseFunc) {
	if f.client.options.Redial == nil {
		_ = f.stopOnce(work)
		f.awaitEnd(work, abandon)
		return
	}
	if f.tellStop(work, abandon) {
		f.awaitEnd(work, abandon)
	}
}

// tellStop returns true once the agent has heard of the stop.
func (f *follower) tellStop(work context.Context, abandon context.CancelCauseFunc) bool {
	for f.mayRetry() {
		left := f.client.options.SilentFor - f.client.silence.lasts()
		if left <= 0 {
			f.abandonSilent(abandon)
			return false
		}
		bounded, cancel := context.WithTimeoutCause(work, left, load.ErrLost)
		err := f.stopOnce(bounded)
		cancel()
		if err == nil {
			return true
		}
		select {
		case <-time.After(min(left, jitter(retryMax))):
		case <-work.Done():
			return false
		}
	}
	return false // the run of the workload finds that out itself
}

// awaitEnd waits until the workload has ended. Only time in which the agent answers counts as its own: it has nothing to do with a
// cut that begins meanwhile.
func (f *follower) awaitEnd(work context.Context, abandon context.CancelCauseFunc) {
	o := f.client.options
	look := time.NewTicker(stopLook)
	defer look.Stop()
	var answering time.Duration
	for before := time.Now(); ; {
		select {
		case <-work.Done():
			return
		case now := <-look.C:
			silent := f.client.silence.lasts()
			if o.Redial == nil || o.PingEvery <= 0 || silent < 2*o.PingEvery {
				answering += now.Sub(before)
			}
			before = now
			switch {
			case answering >= o.StopWithin:
				abandon(fmt.Errorf("the workload did not stop within %v", o.StopWithin))
				return
			case o.Redial != nil && silent >= o.SilentFor:
				f.abandonSilent(abandon)
				return
			}
		}
	}
}

func (f *follower) abandonSilent(abandon context.CancelCauseFunc) {
	f.client.orphan(f.path)
	abandon(fmt.Errorf("%w: it has been silent for %v; what it measured since is lost", load.ErrLost,
		f.client.silence.lasts().Round(time.Second)))
}

func (f *follower) mayRetry() bool { return f.client.options.Redial != nil && !f.client.isOver() }

// stopOnce returns an error where the agent did not hear of it but may later.
func (f *follower) stopOnce(ctx context.Context) error {
	link, err := f.client.connection(ctx)
	if err != nil {
		err = f.client.lostError(ctx, err)
	} else {
		err = f.client.promptly(ctx, link, request{http.MethodPost, f.path + "/stop", nil}, nil)
	}
	if errors.Is(err, load.ErrLost) && !errors.Is(err, errForgotten) {
		return err
	}
	return nil
}
