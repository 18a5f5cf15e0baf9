package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// clockEvery is how often the clocks of agents are compared with the run's.
	clockEvery = 10 * time.Second
	// clockJumpMin is the least change between two comparisons that is reported: more than a network service for time slews away,
	// and more than noise.
	clockJumpMin = 100 * time.Millisecond
)

// Names of the series of an agent's clock.
const (
	clockOffsetName = "bragg_agent_clock_offset_seconds"
	clockErrorName  = "bragg_agent_clock_error_seconds"
)

// watchClock compares the clocks of one agent with the run's until ctx ends.
func (p *Pool) watchClock(ctx context.Context, vm target.VM, c *client.Client) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	var before *client.Clock
	for {
		if now, err := c.AskClock(ctx); err == nil {
			p.compareClocks(vm, before, now)
			before = &now
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Lost():
			return
		case <-tick.C:
		}
	}
}

// compareClocks reports one comparison, and what has jumped since the one before.
func (p *Pool) compareClocks(vm target.VM, before *client.Clock, now client.Clock) {
	at := now.At.Sub(p.options.Zero).Nanoseconds()
	labels := map[string]string{"vm": vm.Name, "instance": vm.Name, "vm_group": vm.Group, "node": vm.NodeID}
	p.options.Observer.Samples([]result.Sample{
		{AtNanos: at, Name: clockOffsetName, Labels: labels, Value: now.Wall.Seconds()},
		{AtNanos: at, Name: clockErrorName, Labels: labels, Value: now.Error.Seconds()},
	})
	if before == nil {
		return
	}
	for _, e := range clockJumps(*before, now) {
		e.AtNanos = at
		switch {
		case e.Subject == "":
			e.Group, e.Subject = vm.Group, vm.Name
		case !p.ownJumped(now.Own):
			continue
		}
		p.options.Observer.Event(e)
	}
}

// ownJumped reports whether a step of this machine's wall clock is news: it shows at every agent, and is reported once.
func (p *Pool) ownJumped(step time.Duration) bool {
	known := p.ownClock.Load()
	return (step-time.Duration(known)).Abs() > clockJumpMin && p.ownClock.CompareAndSwap(known, int64(step))
}

// clockJumps returns what has jumped between two comparisons, without its moment; an event without a subject is about the agent. A
// jump must be larger than the errors of both.
func clockJumps(before, now client.Clock) []interval.Event {
	var list []interval.Event
	add := func(d, uncertain time.Duration, text, subject string) {
		if d.Abs() > clockJumpMin && d.Abs() > uncertain {
			list = append(list, interval.Event{Kind: interval.EventClockJump, SpanNanos: int64(d), Subject: subject,
				Message: fmt.Sprintf(text, unit.FormatDuration(d))})
		}
	}
	uncertain := before.Error + now.Error
	standstill := now.Standstill - before.Standstill
	add(standstill, uncertain, "the VM's monotonic clock lost %s: the VM was paused, or its clock stopped", "")
	// A VM that stood still may have lost the time from its wall clock too: that is one event.
	if wall := now.Wall - before.Wall; (wall + standstill).Abs() > uncertain+clockJumpMin {
		add(wall, uncertain, "the VM's wall clock jumped by %s; intervals are placed by its monotonic clock", "")
	}
	add(now.Own-before.Own, 0, "the wall clock of this machine jumped by %s; the run's axis is monotonic", interval.Controller)
	return list
}
