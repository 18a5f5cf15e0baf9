package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/wait"
)

// What becomes of a workload whose agent is silent. While it runs, the client redials for RedialFor: the load goes on, and its intervals
// come later. Stopping it has a bound of its own, so that it always returns:
//
//	stop ──▶ agent confirms ──▶ ends within StopWithin, counted while the agent answers
//	     └─▶ silent for SilentFor ──▶ given up; an agent that comes back is ordered to forget the workload

// orphan remembers a workload that was given up, and drops the connection, which is of no use. The agent learns of it over the next one.
func (c *Client) orphan(path string) {
	c.agentMu.Lock()
	c.orphans = append(c.orphans, path)
	c.agentMu.Unlock()
	c.drop(nil)
}

// dropOrphans makes an agent that is back forget what was given up: it must not go on beside what comes next.
func (c *Client) dropOrphans(ctx context.Context, link *http.ClientConn) {
	c.agentMu.Lock()
	orphans := c.orphans
	c.orphans = nil
	c.agentMu.Unlock()
	for i, path := range orphans {
		err := c.callOver(ctx, link, request{http.MethodDelete, path, nil}, nil)
		if err != nil && !errors.Is(err, errForgotten) {
			c.agentMu.Lock()
			c.orphans = append(c.orphans, orphans[i:]...)
			c.agentMu.Unlock()
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

// tellStop returns true once the agent has received the stop.
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
		if wait.For(work, min(left, jitter(retryMax))) != nil {
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
	abandon(fmt.Errorf("%w: it has been silent for %v; its measurements since then are lost", load.ErrLost,
		f.client.silence.lasts().Round(time.Second)))
}

func (f *follower) mayRetry() bool { return f.client.options.Redial != nil && !f.client.isOver() }

// stopOnce returns an error where the agent did not receive it but may later.
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
