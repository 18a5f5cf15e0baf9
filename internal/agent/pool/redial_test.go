package pool

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// mortal lets VMs end, of which the provider then knows.
type mortal struct {
	target.AgentDialer
	mu    sync.Mutex
	dead  map[string]bool
	conns map[string][]net.Conn
}

func (m *mortal) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead[vm.Name] {
		return nil, &target.StoppedError{VM: vm.Name, Reason: "its system panicked"}
	}
	conn, err := m.AgentDialer.DialAgent(ctx, vm)
	if err == nil {
		m.conns[vm.Name] = append(m.conns[vm.Name], conn)
	}
	return conn, err
}

func (m *mortal) kill(vm target.VM) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[vm.Name] = true
	for _, c := range m.conns[vm.Name] {
		_ = c.Close()
	}
}

// TestStoppedVMs: a VM that stops by itself ends its load with the reason and is reported once; a VM that the run powered
// off is not reported.
func TestStoppedVMs(t *testing.T) {
	m := newFleet(t, 3)
	dialer := &mortal{AgentDialer: m.pool.dialer, dead: map[string]bool{}, conns: map[string][]net.Conn{}}
	m.pool.dialer = dialer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := m.load(ctx)
	crashed, cut := m.vms[0], m.vms[1]
	at := time.Now()
	dialer.kill(crashed)
	m.mu.Lock()
	m.cuts[cut.Name]++
	m.mu.Unlock()
	dialer.kill(cut)
	for i := range 2 {
		if err := <-errs[i]; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "its system panicked") {
			t.Errorf("the load on %s ended with %v", m.vms[i].Name, err)
		}
	}
	var told []interval.Event
	for _, e := range m.heard() {
		if e.Kind == interval.EventAgentSilent && e.Subject == cut.Name {
			t.Errorf("of a VM whose power the run took: %q", e.Message)
		}
		if e.Kind == interval.EventVMStopped {
			told = append(told, e)
		}
	}
	if len(told) != 1 || told[0].Subject != crashed.Name || told[0].Error != "its system panicked" {
		t.Fatalf("told were %+v, want only that the system of %s panicked, once", told, crashed.Name)
	}
	// The provider has no moment: it lies after the agent was heard for the last time, and before that was noticed.
	noticed, uncertain, killed := time.Duration(told[0].AtNanos), time.Duration(told[0].UncertainNanos), at.Sub(m.pool.options.Zero)
	if noticed < killed || noticed-uncertain > killed || uncertain > time.Since(m.pool.options.Zero) {
		t.Errorf("it stopped at %v; told was %v, up to %v earlier", killed, noticed, uncertain)
	}
	stop()
	if err := <-errs[2]; err != nil {
		t.Errorf("the load on the other VM ended with %v", err)
	}
}

// TestMomentOfAStop: the event has the moment that is known, on the run's axis.
func TestMomentOfAStop(t *testing.T) {
	m := newFleet(t, 1)
	zero := time.Now().Add(-time.Minute)
	m.pool.options.Zero = zero
	for _, c := range []struct {
		why       target.StoppedError
		from, to  time.Duration
		uncertain time.Duration
		whyItIsSo string
	}{
		{target.StoppedError{At: zero.Add(8 * time.Second)}, 8 * time.Second, 8 * time.Second, 0, "the provider knows it"},
		{target.StoppedError{At: zero.Add(30 * time.Second), Uncertain: 12 * time.Second}, 30 * time.Second, 30 * time.Second, 12 * time.Second, "it noticed it"},
		{target.StoppedError{At: zero.Add(30 * time.Second), Uncertain: time.Hour}, 30 * time.Second, 30 * time.Second, 30 * time.Second, "not before the run"},
		{target.StoppedError{At: zero.Add(-time.Second)}, 0, 0, 0, "before the run"},
		{target.StoppedError{}, time.Minute, time.Hour, 0, "unknown"},
	} {
		m.pool.reportStopped(m.vms[0], &c.why)
		heard := m.heard()
		e := heard[len(heard)-1]
		if at := time.Duration(e.AtNanos); e.Kind != interval.EventVMStopped || at < c.from || at > c.to || e.UncertainNanos != c.uncertain.Nanoseconds() {
			t.Errorf("%s: got %+v", c.whyItIsSo, e)
		}
	}
}
