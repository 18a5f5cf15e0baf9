package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// helloDeadline bounds how long an agent may take to answer once its VM is powered on: a guest boots meanwhile. A distribution on an
// emulated processor, on a machine with other work, was seen to take eight minutes.
const helloDeadline = 15 * time.Minute

// pingEvery is after how much silence an agent on a network is asked whether it is there.
const pingEvery = 5 * time.Second

// agents keeps one connection to the agent of each VM. A connection ends with the VM's power; the next call makes a
// new one. One over a network is made again when it breaks, as long as the VM is the same and was not switched off.
type agents struct {
	dialer target.AgentDialer
	fence  uint64
	zero   time.Time // of the run's axis
	// met is called with every agent that answered for the first time or after a new start.
	met func(vm target.VM, hello agent.Hello, network bool)
	// individuals finds agents that say the same of themselves.
	individuals *individuals
	// began is called with what drives a load on its VM; empty where that is the plan's engine.
	began func(w load.Workload, engine string)
	// cut is told of connections that broke and came back.
	cut func(vm target.VM, back bool, away time.Duration)
	// patience is how long a silent agent is waited for once a load on it is to stop.
	patience time.Duration
	// cuts counts how often the run itself took the power of a VM; stopped is told of one that stopped otherwise.
	cuts    func(vm string) int
	stopped func(vm target.VM, why *target.StoppedError)
	// clocks watches the clock of an agent on a network until ctx ends.
	clocks func(ctx context.Context, vm target.VM, client *agent.Client)

	mu    sync.Mutex
	byVM  map[string]*agentLink
	ended bool
}

// agentLink is the connection to one VM. Whoever dials or greets has the turn, so that callers of other VMs go on.
type agentLink struct {
	turn    chan struct{}                // holds one token while somebody has it
	current atomic.Pointer[agent.Client] // changed by who has the turn; read by whoever must not wait for it
	vm      atomic.Pointer[target.VM]    // as it was known last: one that moved is called where it is now
	heard   atomic.Int64                 // when the agent was heard before its connection was lost, on the run's axis
	boot    string
	network bool // the connection is over a network
	watch   context.CancelFunc
	watched sync.WaitGroup
}

func newAgents(t target.Target, fence uint64, zero time.Time) (*agents, error) {
	dialer, ok := t.(target.AgentDialer)
	if !ok {
		return nil, errors.New("reach agents: the target offers none")
	}
	return &agents{dialer: dialer, fence: fence, zero: zero, byVM: map[string]*agentLink{}, individuals: newIndividuals(false)}, nil
}

// Runner returns the agent of a powered-on VM once it has answered.
func (a *agents) Runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	client, err := a.client(ctx, vm)
	if err != nil {
		return nil, err // not a nil *Client in a Runner
	}
	return client, nil
}

func (a *agents) client(ctx context.Context, vm target.VM) (*agent.Client, error) {
	link, err := a.link(vm.Name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloDeadline)
	defer cancel()
	select {
	case link.turn <- struct{}{}:
		defer func() { <-link.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("reach the agent of VM %q: others are calling it: %w", vm.Name, context.Cause(ctx))
	}
	link.vm.Store(&vm)
	if client := link.current.Load(); client != nil {
		hello, err := link.greet(ctx, client)
		switch {
		case err == nil:
			return client, a.greet(link, vm, hello)
		case link.network && !isLost(client):
			return nil, fmt.Errorf("greet the agent of VM %q: %w", vm.Name, err)
		}
		link.drop()
	}
	conn, err := a.dialer.DialAgent(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("reach the agent of VM %q: %w", vm.Name, err)
	}
	network := overNetwork(conn)
	client := agent.NewClient(conn, a.options(link, vm, network))
	hello, err := client.Hello(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent of VM %q: %w", vm.Name, err), client.Close())
	}
	link.network = network
	if err := a.greet(link, vm, hello); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	link.current.Store(client)
	if network && a.clocks != nil {
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		link.watch = stop
		link.watched.Go(func() { a.clocks(watch, vm, client) })
	}
	return client, nil
}

// greetAgain is between two attempts to greet an agent that is cut off. Its client has pauses of its own between dials.
const greetAgain = 250 * time.Millisecond

// greet asks the agent over the connection that there was. While one on a network is cut off, its client belongs to the loads that go
// on there too: it is asked again until ctx ends, and kept.
func (l *agentLink) greet(ctx context.Context, client *agent.Client) (agent.Hello, error) {
	var last error
	for {
		hello, err := client.Hello(ctx)
		switch {
		case err == nil:
			return hello, nil
		case ctx.Err() != nil:
			return hello, errors.Join(err, last)
		case !l.network || isLost(client) || !errors.Is(err, load.ErrLost):
			return hello, err
		}
		last = err
		select {
		case <-time.After(greetAgain):
		case <-client.Lost():
		case <-ctx.Done():
		}
	}
}

// isLost tells whether the agent behind a client is gone for good.
func isLost(client *agent.Client) bool {
	select {
	case <-client.Lost():
		return true
	default:
		return false
	}
}

// overNetwork tells whether a connection can break while the agent goes on, and be made again. An inherited one cannot: the agent
// ends with it, and shares our clock. Every connection over a network is encrypted.
func overNetwork(conn net.Conn) bool {
	_, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	return ok
}

func (a *agents) options(link *agentLink, vm target.VM, network bool) agent.ClientOptions {
	o := agent.ClientOptions{Fence: a.fence, Started: a.began}
	if network {
		o.Zero, o.PingEvery = a.zero, pingEvery
		o.SilentFor = a.patience
		o.Redial = a.redial(link, vm)
		o.Cut = func(back bool, lasted time.Duration) {
			if !back {
				link.heard.Store(int64(time.Since(a.zero) - lasted))
			}
			if a.cut != nil {
				a.cut(vm, back, lasted)
			}
		}
	}
	return o
}

func (a *agents) greet(link *agentLink, vm target.VM, hello agent.Hello) error {
	if hello.Boot == link.boot {
		return nil
	}
	if err := a.individuals.meet(vm, hello); err != nil {
		return err
	}
	link.boot = hello.Boot
	a.met(vm, hello, link.network)
	return nil
}

// metrics asks the agent of a VM for its counters over the connection that is there, and makes none.
func (a *agents) metrics(ctx context.Context, vm string) ([]byte, error) {
	a.mu.Lock()
	link := a.byVM[vm]
	a.mu.Unlock()
	if link == nil {
		return nil, fmt.Errorf("scrape the agent of VM %q: it was never reached", vm)
	}
	client := link.current.Load()
	if client == nil {
		return nil, fmt.Errorf("scrape the agent of VM %q: there is no connection", vm)
	}
	return client.Metrics(ctx)
}

func (a *agents) link(vm string) (*agentLink, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, errors.New("the run has ended")
	}
	link := a.byVM[vm]
	if link == nil {
		link = &agentLink{turn: make(chan struct{}, 1)}
		a.byVM[vm] = link
	}
	return link, nil
}

// placed notes that a VM is on another node.
func (a *agents) placed(vm, node string) {
	a.mu.Lock()
	link := a.byVM[vm]
	a.mu.Unlock()
	if link == nil {
		return
	}
	if known := link.vm.Load(); known != nil {
		moved := *known
		moved.NodeID = node
		link.vm.Store(&moved)
	}
}

// gone gives up the connection to a VM that this run itself has switched off: what waits for it ends at once, and nobody calls an
// agent that cannot answer. It does not wait for whoever is calling the VM.
func (a *agents) gone(vm target.VM) {
	a.individuals.forget(vm.Name)
	a.mu.Lock()
	link := a.byVM[vm.Name]
	a.mu.Unlock()
	if link == nil {
		return
	}
	if client := link.current.Load(); client != nil {
		_ = client.Close()
	}
}

// drop forgets the client. The caller has the turn.
func (l *agentLink) drop() {
	if client := l.current.Swap(nil); client != nil {
		_ = client.Close()
	}
	if l.watch != nil {
		l.watch()
		l.watched.Wait()
		l.watch = nil
	}
}

// close ends all connections. The VMs behind them are gone by then; what is left of theirs has nothing more to say.
func (a *agents) close() {
	a.mu.Lock()
	a.ended = true
	links := a.byVM
	a.byVM = nil
	a.mu.Unlock()
	for _, link := range links {
		if client := link.current.Load(); client != nil {
			_ = client.Close() // whoever calls it in his turn returns
		}
		link.turn <- struct{}{}
		link.drop()
		<-link.turn
	}
}
