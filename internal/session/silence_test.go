package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

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

// TestStoppedVMs: a VM that stops by itself ends its load with the reason, and is told once; one whose power the run took is not told.
func TestStoppedVMs(t *testing.T) {
	m := newManyAgents(t, 3)
	dialer := &mortal{AgentDialer: m.agents.dialer, dead: map[string]bool{}, conns: map[string][]net.Conn{}}
	m.agents.dialer = dialer
	var mu sync.Mutex
	told, cuts := map[string]int{}, map[string]int{}
	m.agents.cuts = func(vm string) int {
		mu.Lock()
		defer mu.Unlock()
		return cuts[vm]
	}
	m.agents.stopped = func(vm target.VM, why *target.StoppedError) {
		mu.Lock()
		defer mu.Unlock()
		told[vm.Name+" "+why.Reason]++
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := m.load(ctx)
	crashed, cut := m.vms[0], m.vms[1]
	dialer.kill(crashed)
	mu.Lock()
	cuts[cut.Name]++
	mu.Unlock()
	dialer.kill(cut)
	for i := range 2 {
		if err := <-errs[i]; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "its system panicked") {
			t.Errorf("the load on %s ended with %v", m.vms[i].Name, err)
		}
	}
	mu.Lock()
	if want := crashed.Name + " its system panicked"; len(told) != 1 || told[want] != 1 {
		t.Errorf("told were %v, want only %q, once", told, want)
	}
	mu.Unlock()
	stop()
	if err := <-errs[2]; err != nil {
		t.Errorf("the load on the other VM ended with %v", err)
	}
}
