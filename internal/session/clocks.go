package session

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// clockEvery is how often the clocks of agents are compared with the run's.
	clockEvery = 10 * time.Second
	// clockJumpMin is the least change between two comparisons that is told: more than a network service for time slews away,
	// and more than noise.
	clockJumpMin = 100 * time.Millisecond
)

// Names of the series that tell how an agent's clock stands.
const (
	clockOffsetName = "bragg_agent_clock_offset_seconds"
	clockErrorName  = "bragg_agent_clock_error_seconds"
)

// watchClock compares the clocks of one agent with the run's until ctx ends.
func (c *carrier) watchClock(ctx context.Context, vm target.VM, client *agent.Client) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	var before *agent.Clock
	for {
		if now, err := client.AskClock(ctx); err == nil {
			c.noteClock(vm, before, now)
			before = &now
		}
		select {
		case <-ctx.Done():
			return
		case <-client.Lost():
			return
		case <-tick.C:
		}
	}
}

// noteClock records one comparison, and what has jumped since the one before.
func (c *carrier) noteClock(vm target.VM, before *agent.Clock, now agent.Clock) {
	at := now.At.Sub(c.record.zero).Nanoseconds()
	labels := map[string]string{"vm": vm.Name, "instance": vm.Name, "vm_group": vm.Group, "node": vm.NodeID}
	c.record.Samples([]result.Sample{
		{AtNanos: at, Name: clockOffsetName, Labels: labels, Value: now.Wall.Seconds()},
		{AtNanos: at, Name: clockErrorName, Labels: labels, Value: now.Error.Seconds()},
	})
	if before == nil {
		return
	}
	for _, e := range clockJumps(*before, now) {
		e.AtNanos, e.Group, e.Subject = at, vm.Group, vm.Name
		if e.Node != "" { // ours
			e.Group, e.Subject, e.Node = "", e.Node, ""
			if !c.ownJump(now.Own) {
				continue
			}
		}
		c.record.Event(e)
	}
}

// ownJump tells whether a jump of our own clock is news: every agent shows it.
func (c *carrier) ownJump(own time.Duration) bool {
	c.ownMu.Lock()
	defer c.ownMu.Unlock()
	if (own - c.ownClock).Abs() <= clockJumpMin {
		return false
	}
	c.ownClock = own
	return true
}

// controller is the subject of events about the machine on which the run is driven.
const controller = "controller"

// clockJumps returns what has jumped between two comparisons, without its moment. A jump must be larger than the errors of both.
func clockJumps(before, now agent.Clock) []interval.Event {
	var list []interval.Event
	add := func(d, uncertain time.Duration, text, node string) {
		if d.Abs() > clockJumpMin && d.Abs() > uncertain {
			list = append(list, interval.Event{Kind: interval.EventClockJump, SpanNanos: int64(d), Node: node,
				Message: fmt.Sprintf(text, unit.FormatDuration(d))})
		}
	}
	uncertain := before.Error + now.Error
	standstill := now.Standstill - before.Standstill
	add(standstill, uncertain, "the VM's monotonic clock lost %s: the VM stood still, or its clock did", "")
	// A VM that stood still may have lost the time from its wall clock too: that is one event.
	if wall := now.Wall - before.Wall; (wall + standstill).Abs() > uncertain+clockJumpMin {
		add(wall, uncertain, "the VM's wall clock jumped by %s; intervals are placed by its monotonic clock", "")
	}
	add(now.Own-before.Own, 0, "the wall clock of this machine jumped by %s; the run's axis is monotonic", controller)
	return list
}
