package pool

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// cable is the way to agents that a test can cut.
type cable struct {
	target.AgentDialer
	mu      sync.Mutex
	down    bool
	conns   []net.Conn
	refused chan struct{} // one for each call in vain
	nodes   []string      // where each call that succeeded went
}

func newCable(m *fleet) *cable {
	c := &cable{AgentDialer: m.pool.dialer, refused: make(chan struct{}, 1<<16)}
	m.pool.dialer = c
	return c
}

func (c *cable) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		c.refused <- struct{}{}
		return nil, errors.New("no route")
	}
	conn, err := c.AgentDialer.DialAgent(ctx, vm)
	if err == nil {
		c.conns, c.nodes = append(c.conns, conn), append(c.nodes, vm.NodeID)
	}
	return conn, err
}

func (c *cable) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
	if down {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
		c.conns = nil
	}
}

// TestAskingDuringACutEndsNothing: a load survives an interrupted connection, even if its VM is requested meanwhile.
func TestAskingDuringACutEndsNothing(t *testing.T) {
	m := newFleet(t, 1)
	vm, way := m.vms[0], newCable(m)
	first, err := m.pool.Runner(t.Context(), vm)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := m.load(ctx)[0]
	heard := func() int64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.next[vm.Name]
	}
	way.set(true)
	short, end := context.WithCancel(t.Context())
	impatient, patient := make(chan error, 1), make(chan load.Runner, 1)
	go func() {
		_, err := m.pool.Runner(short, vm)
		impatient <- err
	}()
	calls := func() {
		for range 3 {
			select {
			case <-way.refused:
			case err := <-ended:
				t.Fatalf("the load ended with %v", err)
			}
		}
	}
	calls()
	end()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up got %v", err)
	}
	go func() {
		runner, err := m.pool.Runner(t.Context(), vm)
		if err != nil {
			t.Errorf("the caller that waited for the reconnection got %v", err)
		}
		patient <- runner
	}()
	calls()
	before := heard()
	way.set(false)
	if runner := <-patient; runner != first {
		t.Error("another client took the place of the one that the load uses")
	}
	for heard() <= before {
		select {
		case err := <-ended:
			t.Fatalf("the load ended with %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if m.wrong > 0 {
		t.Errorf("%d intervals came out of turn", m.wrong)
	}
}

// TestOneWaiterDoesNotHoldUpAnother: a caller that waits for its turn at a VM may give up.
func TestOneWaiterDoesNotHoldUpAnother(t *testing.T) {
	m := newFleet(t, 1)
	vm, way := m.vms[0], newCable(m)
	if _, err := m.pool.Runner(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	way.set(true)
	long, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = m.pool.Runner(long, vm)
	}()
	<-way.refused
	short, giveUp := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer giveUp()
	if _, err := m.pool.Runner(short, vm); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	select {
	case <-done:
		t.Error("the first one waits no more: nothing was tested")
	default:
	}
	end()
	<-done
}

// TestMovedVMIsCalledWhereItIs: the way to an agent may lead by its host.
func TestMovedVMIsCalledWhereItIs(t *testing.T) {
	m := newFleet(t, 1)
	vm, way := m.vms[0], newCable(m)
	client, err := m.pool.Client(t.Context(), vm)
	if err != nil {
		t.Fatal(err)
	}
	// again breaks the connection, and returns where the next one went.
	again := func() string {
		way.mu.Lock()
		before := len(way.nodes)
		way.mu.Unlock()
		way.set(true)
		way.set(false)
		for {
			_, _ = client.Hello(t.Context())
			way.mu.Lock()
			nodes := way.nodes
			way.mu.Unlock()
			if len(nodes) > before {
				return nodes[before]
			}
		}
	}
	if node := again(); node != vm.NodeID {
		t.Errorf("a VM on %q was called on %q", vm.NodeID, node)
	}
	m.pool.Moved(vm.Name, "node-2")
	m.pool.Moved("foreign", "node-3")
	if node := again(); node != "node-2" {
		t.Errorf("a VM that was moved to node-2 was called on %q", node)
	}
	vm.NodeID = "node-4"
	if _, err := m.pool.Client(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	if node := again(); node != "node-4" {
		t.Errorf("a VM that came up on node-4 was called on %q", node)
	}
}
