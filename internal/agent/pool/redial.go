package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

// redial restores the connection to the agent of a VM. Once the provider says that the VM has stopped, it gives up; the stop is
// reported once, unless ours says that the run itself takes the VM's power.
func (p *Pool) redial(l *link, vm target.VM, ours func() bool) func(ctx context.Context) (net.Conn, error) {
	var reported sync.Once
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := p.dialer.DialAgent(ctx, *l.vm.Load())
		var stopped *target.StoppedError
		if !errors.As(err, &stopped) {
			return conn, err
		}
		if !ours() {
			reported.Do(func() { p.reportStopped(vm, p.dated(stopped, l)) })
		}
		return nil, fmt.Errorf("%w: %w", client.ErrGone, stopped)
	}
}

// dated says when a VM stopped where its provider cannot: after its agent was heard, and before now.
func (p *Pool) dated(stopped *target.StoppedError, l *link) *target.StoppedError {
	if !stopped.At.IsZero() {
		return stopped
	}
	known := *stopped
	known.At = time.Now()
	known.Uncertain = known.At.Sub(p.options.Zero) - time.Duration(l.heard.Load())
	return &known
}

// reportStopped reports a VM that stopped without the run's doing.
func (p *Pool) reportStopped(vm target.VM, why *target.StoppedError) {
	at := p.now()
	if !why.At.IsZero() {
		at = max(0, why.At.Sub(p.options.Zero).Nanoseconds())
	}
	p.options.Observer.Event(interval.Event{
		AtNanos: at, Kind: interval.EventVMStopped, Group: vm.Group, Subject: vm.Name, Node: vm.NodeID, Error: why.Reason,
		UncertainNanos: min(at, why.Uncertain.Nanoseconds()),
		Message:        fmt.Sprintf("%s stopped by itself: %s", vm.Name, why.Reason),
	})
}

// disconnected returns what a client calls when it loses the connection and when it has it again. Where ours says that the run itself
// takes the VM's power or deletes it, its load does not continue, and there is nothing to report.
func (p *Pool) disconnected(l *link, vm target.VM, ours func() bool) func(back bool, lasted time.Duration) {
	var reported atomic.Bool
	return func(back bool, lasted time.Duration) {
		if !back {
			l.heard.Store(int64(time.Since(p.options.Zero) - lasted))
			reported.Store(!ours())
		}
		if reported.Load() {
			p.reportDisconnect(vm, back, lasted)
		}
	}
}

// reportDisconnect reports that the connection to an agent was lost, and that it is restored. No number suffers: intervals come later.
func (p *Pool) reportDisconnect(vm target.VM, back bool, away time.Duration) {
	e := interval.Event{AtNanos: p.now(), Kind: interval.EventAgentSilent, Group: vm.Group, Subject: vm.Name}
	e.Message = fmt.Sprintf("lost the connection to the agent of %s; its load continues, reconnecting", vm.Name)
	if back {
		e.Kind, e.SpanNanos = interval.EventAgentBack, int64(away)
		e.Message = fmt.Sprintf("reconnected to the agent of %s after %s", vm.Name, unit.FormatDuration(away))
	}
	p.options.Observer.Event(e)
}

// now returns the present moment on the run's axis.
func (p *Pool) now() int64 { return time.Since(p.options.Zero).Nanoseconds() }
