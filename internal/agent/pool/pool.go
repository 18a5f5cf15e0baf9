// Package pool keeps the connections of one run to the agents of its VMs, one each.
//
//	Runner(vm) ──▶ dial or reuse ──▶ Hello, identity check ──▶ client
//	connection lost ──▶ redial until the agent answers, its VM has stopped, or the run has switched it off
//
// The pool also compares the clocks of agents on networks with the run's. It runs no load and records nothing: it
// reports to the Observer.
package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// helloDeadline bounds how long an agent may take to answer once its VM is powered on: a guest boots meanwhile. A distribution on an
// emulated processor, on a machine with other work, was seen to take eight minutes.
const helloDeadline = 15 * time.Minute

// pingEvery is the silence after which an agent on a network is pinged.
const pingEvery = 5 * time.Second

// Observer follows the agents of a pool. Its methods are called from several goroutines and must return soon.
type Observer interface {
	// Answered reports an agent that answered for the first time, or after a restart.
	Answered(vm target.VM, a Answer)
	// Prepared reports what drives a load on its VM; engine is zero where that is the plan's engine.
	Prepared(w load.Workload, engine interval.Engine)
	// Event reports connections that were lost and restored, VMs that stopped by themselves, and clocks that jumped.
	Event(e interval.Event)
	// Samples are the offsets of agents' clocks.
	Samples(list []result.Sample)
	// PowerCuts returns how often the run itself has taken the power of a VM, or was about to: such a VM has not stopped by itself.
	PowerCuts(vm string) int
}

// Answer is an agent that answered.
type Answer struct {
	wire.Hello
	Network bool // it is reached over a network, where its MetricsAddress may be unreachable
	// Metrics fetches the agent's counters over the connection that there is at that moment, and makes none.
	Metrics func(ctx context.Context) ([]byte, error)
}

// Options configure how a run handles its agents. All fields are required.
type Options struct {
	Fence    uint64    // of the run's lease
	Zero     time.Time // of the run's axis
	Observer Observer
	// Systems: every VM has an operating system of its own. On hosts that run VMs as processes, machine-id and addresses are
	// the host's.
	Systems bool
	// Topology returns how the CPUs of a group's VMs are to be divided, zero for any way. May be nil.
	Topology func(group string) target.Topology
	// SilentFor is how long a silent agent is waited for once a load on it is to stop.
	SilentFor time.Duration
	// Outputs receives what programs of a load wrote on its VM. May be nil.
	Outputs func(w load.Workload, list []load.Output)
}

// Pool keeps one connection to the agent of each VM. A connection ends with the VM's power; the next call opens a new
// one. A lost connection over a network is restored, as long as the VM is the same and was not switched off.
type Pool struct {
	dialer     target.AgentDialer
	options    Options
	identities *identityCheck
	ownClock   atomic.Int64 // how far this machine's wall clock was stepped, as far as reported

	mu    sync.Mutex
	byVM  map[string]*link
	ended bool
}

// link is the connection to one VM. The holder of the turn dials and greets; callers of other VMs go on.
type link struct {
	turn    chan struct{}                 // holds one token while in use
	current atomic.Pointer[client.Client] // changed by the holder of the turn; read by those who must not wait for it
	vm      atomic.Pointer[target.VM]     // as it was known last: a VM that moved is called where it is now
	heard   atomic.Int64                  // when the agent was heard before its connection was lost, on the run's axis
	boot    string
	network bool // the connection is over a network
	watch   context.CancelFunc
	watched sync.WaitGroup
}

// New returns a pool without connections.
func New(dialer target.AgentDialer, o Options) *Pool {
	return &Pool{dialer: dialer, options: o, identities: newIdentityCheck(o.Systems), byVM: map[string]*link{}}
}

// Runner returns the agent of a powered-on VM once it has answered.
func (p *Pool) Runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	c, err := p.Client(ctx, vm)
	if err != nil {
		return nil, err // not a nil *Client in a Runner
	}
	return c, nil
}

// Client is Runner for callers that use more of an agent than its loads. The pool owns the client.
func (p *Pool) Client(ctx context.Context, vm target.VM) (*client.Client, error) {
	l, err := p.link(vm.Name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloDeadline)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to the agent of VM %q: another caller is connecting: %w", vm.Name, context.Cause(ctx))
	}
	l.vm.Store(&vm)
	if c := l.current.Load(); c != nil {
		hello, err := l.greet(ctx, c)
		switch {
		case err == nil:
			return c, p.greeted(l, vm, hello)
		case l.network && !isLost(c):
			return nil, fmt.Errorf("greet the agent of VM %q: %w", vm.Name, err)
		}
		l.drop()
	}
	return p.connect(ctx, l, vm)
}

// connect makes the first connection to an agent, or the first after its VM was switched off. The caller has the turn.
func (p *Pool) connect(ctx context.Context, l *link, vm target.VM) (*client.Client, error) {
	conn, err := p.dialer.DialAgent(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("connect to the agent of VM %q: %w", vm.Name, err)
	}
	network := overNetwork(conn)
	c := client.New(conn, p.clientOptions(l, vm, network))
	hello, err := c.Hello(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent of VM %q: %w", vm.Name, err), c.Close())
	}
	l.network = network
	if err := p.greeted(l, vm, hello); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	l.current.Store(c)
	if network {
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.watch = stop
		l.watched.Go(func() { p.watchClock(watch, vm, c) })
	}
	return c, nil
}

// greetAgain is between two attempts to greet an agent that is cut off. Its client has pauses of its own between dials.
const greetAgain = 250 * time.Millisecond

// greet asks the agent over the existing connection. While a network agent is cut off, its client belongs to the loads that go on
// there too: it is kept, and asked again until ctx ends.
func (l *link) greet(ctx context.Context, c *client.Client) (wire.Hello, error) {
	var last error
	for {
		hello, err := c.Hello(ctx)
		switch {
		case err == nil:
			return hello, nil
		case ctx.Err() != nil:
			return hello, errors.Join(err, last)
		case !l.network || isLost(c) || !errors.Is(err, load.ErrLost):
			return hello, err
		}
		last = err
		select {
		case <-time.After(greetAgain):
		case <-c.Lost():
		case <-ctx.Done():
		}
	}
}

// isLost reports whether the agent behind a client is gone for good.
func isLost(c *client.Client) bool {
	select {
	case <-c.Lost():
		return true
	default:
		return false
	}
}

// overNetwork reports whether a connection can break while the agent goes on, and be restored. An inherited one cannot: the agent
// ends with it, and shares our clock. Every connection over a network is encrypted.
func overNetwork(conn net.Conn) bool {
	_, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	return ok
}

func (p *Pool) clientOptions(l *link, vm target.VM, network bool) client.Options {
	o := client.Options{Fence: p.options.Fence, Started: p.options.Observer.Prepared, Ended: p.options.Outputs}
	if network {
		o.Zero, o.PingEvery, o.SilentFor = p.options.Zero, pingEvery, p.options.SilentFor
		cuts := p.options.Observer.PowerCuts(vm.Name)
		ours := func() bool { return p.options.Observer.PowerCuts(vm.Name) != cuts }
		o.Redial = p.redial(l, vm, ours)
		o.Disconnected = p.disconnected(l, vm, ours)
	}
	return o
}

// greeted checks and reports an agent that was not known, or has restarted.
func (p *Pool) greeted(l *link, vm target.VM, hello wire.Hello) error {
	if hello.Boot == l.boot {
		return nil
	}
	if err := p.identities.check(vm, hello); err != nil {
		return err
	}
	if p.options.Topology != nil {
		if err := checkTopology(vm, p.options.Topology(vm.Group), hello.CPUs); err != nil {
			return err
		}
	}
	l.boot = hello.Boot
	metrics := func(ctx context.Context) ([]byte, error) {
		c := l.current.Load()
		if c == nil {
			return nil, fmt.Errorf("scrape the agent of VM %q: not connected", vm.Name)
		}
		return c.Metrics(ctx)
	}
	p.options.Observer.Answered(vm, Answer{Hello: hello, Network: l.network, Metrics: metrics})
	return nil
}

func (p *Pool) link(vm string) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errors.New("the run has ended")
	}
	l := p.byVM[vm]
	if l == nil {
		l = &link{turn: make(chan struct{}, 1)}
		p.byVM[vm] = l
	}
	return l, nil
}

// known returns the link of a VM that was called before; nil otherwise.
func (p *Pool) known(vm string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byVM[vm]
}

// Moved records the new node of a VM.
func (p *Pool) Moved(vm, node string) {
	l := p.known(vm)
	if l == nil {
		return
	}
	if known := l.vm.Load(); known != nil {
		moved := *known
		moved.NodeID = node
		l.vm.Store(&moved)
	}
}

// SwitchedOff drops the connection to a VM that the run itself has switched off: waiting calls end immediately, and the
// agent is not redialled. It does not wait for the holder of the turn.
func (p *Pool) SwitchedOff(vm target.VM) {
	p.identities.forget(vm.Name)
	if l := p.known(vm.Name); l != nil {
		if c := l.current.Load(); c != nil {
			_ = c.Close()
		}
	}
}

// drop forgets the client. The caller has the turn.
func (l *link) drop() {
	if c := l.current.Swap(nil); c != nil {
		_ = c.Close()
	}
	if l.watch != nil {
		l.watch()
		l.watched.Wait()
		l.watch = nil
	}
}

// Close ends all connections. The VMs behind them are gone by then.
func (p *Pool) Close() {
	p.mu.Lock()
	p.ended = true
	links := p.byVM
	p.byVM = nil
	p.mu.Unlock()
	for _, l := range links {
		if c := l.current.Load(); c != nil {
			_ = c.Close() // a caller that has the turn returns
		}
		l.turn <- struct{}{}
		l.drop()
		<-l.turn
	}
}
