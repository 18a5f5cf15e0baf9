package pool

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// fleet is a pool with real agents behind mutual TLS, the observer of it, and the sink of the loads.
type fleet struct {
	t         *testing.T
	vms       []target.VM
	pool      *Pool
	authority *trust.Authority
	addresses map[string]string

	mu     sync.Mutex
	events []interval.Event
	cuts   map[string]int
	next   map[string]int64 // by VM: the sequence that comes next
	wrong  int
}

func newFleet(t *testing.T, count int) *fleet {
	t.Helper()
	authority, err := trust.New("run-1", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	m := &fleet{t: t, authority: authority, addresses: map[string]string{}, cuts: map[string]int{}, next: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	for i := range count {
		vm := target.VM{Name: fmt.Sprintf("many-%04d", i+1), Group: "many", Ordinal: i, NodeID: "node-1", Power: target.PowerOn}
		m.vms = append(m.vms, vm)
		files, err := authority.Agent(vm.Name)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := trust.Server(files)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m.addresses[vm.Name] = l.Addr().String()
		s := agent.NewServer(agent.Options{Generators: map[string]load.Generator{"ticking": ticking{}}, VM: vm.Name})
		served.Go(func() {
			if err := s.ServeTLS(ctx, l, settings); err != nil {
				t.Error(err)
			}
			s.Close()
		})
	}
	t.Cleanup(func() { stop(); served.Wait() })
	m.pool = New(m, Options{Fence: 1, Zero: time.Now(), SilentFor: time.Minute, Observer: m})
	t.Cleanup(m.pool.Close)
	return m
}

func (m *fleet) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.addresses[vm.Name])
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, m.authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func (*fleet) Answered(target.VM, Answer)              {}
func (*fleet) Prepared(load.Workload, interval.Engine) {}
func (*fleet) Samples([]result.Sample)                 {}

func (m *fleet) Event(e interval.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

func (m *fleet) PowerCuts(vm string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cuts[vm]
}

// heard returns the events so far.
func (m *fleet) heard() []interval.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

func (m *fleet) Interval(iv interval.Interval) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next[iv.VM] != iv.Sequence {
		m.wrong++
	}
	m.next[iv.VM] = iv.Sequence + 1
}

// load runs a load on every VM and returns when all of them have been heard; what each ends with comes by its channel.
func (m *fleet) load(ctx context.Context) []chan error {
	m.t.Helper()
	errs := make([]chan error, len(m.vms))
	for i, vm := range m.vms {
		runner, err := m.pool.Runner(ctx, vm)
		if err != nil {
			m.t.Fatal(err)
		}
		errs[i] = make(chan error, 1)
		w := load.Workload{Name: "w", Group: vm.Group, VM: vm.Name, Ordinal: i, Instance: 1, Generator: "ticking"}
		go func() { errs[i] <- runner.Run(ctx, w, m) }()
	}
	heard := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.next)
	}
	for heard() < len(m.vms) {
		time.Sleep(10 * time.Millisecond)
	}
	return errs
}

// ticking makes an empty interval every tenth of a second.
type ticking struct{}

func (ticking) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (ticking) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	return tickingRun{w}, nil
}

type tickingRun struct{ w load.Workload }

func (tickingRun) Close() error { return nil }

func (r tickingRun) Run(ctx context.Context, sink load.Sink) error {
	const length = 100 * time.Millisecond
	for n := int64(0); ; n++ {
		iv := interval.Interval{Workload: r.w.Name, Group: r.w.Group, VM: r.w.VM, Instance: r.w.Instance, Sequence: n,
			StartNanos: n * int64(length), LengthNanos: int64(length)}
		select {
		case <-time.After(length):
			sink.Interval(iv)
		case <-ctx.Done():
			iv.Final = true
			sink.Interval(iv)
			return nil
		}
	}
}
