package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

// How long a silent agent is waited for when a load on it is to stop. A cut of ten minutes costs no number, whenever in a run it
// falls; in a rehearsal nobody wants to wait that long for an agent that will not come back.
const (
	silentFor          = 11 * time.Minute
	silentForRehearsal = 2 * time.Minute
)

func patienceOf(p *plan.Plan) time.Duration {
	if p.Rehearsal != nil {
		return silentForRehearsal
	}
	return silentFor
}

// redial makes connections to the agent of a VM after the first was lost. When the provider says that the VM has stopped, nobody calls
// again; that is told once, unless this run took its power.
func (a *agents) redial(link *agentLink, vm target.VM) func(ctx context.Context) (net.Conn, error) {
	before := a.cutsOf(vm)
	var told sync.Once
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := a.dialer.DialAgent(ctx, *link.vm.Load())
		var stopped *target.StoppedError
		if !errors.As(err, &stopped) {
			return conn, err
		}
		if a.stopped != nil && a.cutsOf(vm) == before {
			told.Do(func() { a.stopped(vm, a.dated(stopped, link)) })
		}
		return nil, fmt.Errorf("%w: %w", agent.ErrGone, stopped)
	}
}

// dated says when a VM stopped where its provider cannot: after its agent was heard, and before now.
func (a *agents) dated(stopped *target.StoppedError, link *agentLink) *target.StoppedError {
	if !stopped.At.IsZero() {
		return stopped
	}
	known := *stopped
	known.At = time.Now()
	known.Uncertain = known.At.Sub(a.zero) - time.Duration(link.heard.Load())
	return &known
}

func (a *agents) cutsOf(vm target.VM) int {
	if a.cuts == nil {
		return 0
	}
	return a.cuts(vm.Name)
}

// noteStopped says that a VM is lost of which the run knows nothing.
func (c *carrier) noteStopped(vm target.VM, why *target.StoppedError) {
	at := c.record.now()
	if !why.At.IsZero() {
		at = max(0, why.At.Sub(c.record.zero).Nanoseconds())
	}
	c.record.Event(interval.Event{
		AtNanos: at, Kind: interval.EventVMStopped, Group: vm.Group, Subject: vm.Name, Node: vm.NodeID, Error: why.Reason,
		UncertainNanos: min(at, why.Uncertain.Nanoseconds()),
		Message:        fmt.Sprintf("%s stopped by itself: %s", vm.Name, why.Reason),
	})
}

// noteCut says that the way to an agent broke, and when it is there again. No number suffers: intervals come later.
func (c *carrier) noteCut(vm target.VM, back bool, away time.Duration) {
	e := interval.Event{AtNanos: c.record.now(), Kind: interval.EventAgentSilent, Group: vm.Group, Subject: vm.Name}
	e.Message = fmt.Sprintf("the connection to the agent of %s was lost; it goes on, and is called again", vm.Name)
	if back {
		e.Kind, e.SpanNanos = interval.EventAgentBack, int64(away)
		e.Message = fmt.Sprintf("the agent of %s answers again, %s after the connection was lost", vm.Name, unit.FormatDuration(away))
	}
	c.record.Event(e)
}
