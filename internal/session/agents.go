package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// helloDeadline bounds how long an agent may take to answer once its VM is powered on: a guest boots meanwhile.
const helloDeadline = 5 * time.Minute

// agents keeps one connection to the agent of each VM. A connection ends with the VM's power; the next call makes a
// new one.
type agents struct {
	dialer target.AgentDialer
	fence  uint64
	// met is called with every agent that answered for the first time or after a new start.
	met func(vm target.VM, hello agent.Hello)
	// began is called with what drives a load on its VM; empty where that is the plan's engine.
	began func(w load.Workload, engine string)

	mu    sync.Mutex
	byVM  map[string]*agentLink
	ended bool
}

// agentLink is the connection to one VM. Its lock is held while it is dialled, so that callers of other VMs go on.
type agentLink struct {
	mu     sync.Mutex
	client *agent.Client
	boot   string
}

func newAgents(t target.Target, fence uint64) (*agents, error) {
	dialer, ok := t.(target.AgentDialer)
	if !ok {
		return nil, errors.New("reach agents: the target offers none")
	}
	return &agents{dialer: dialer, fence: fence, byVM: map[string]*agentLink{}}, nil
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
	link.mu.Lock()
	defer link.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, helloDeadline)
	defer cancel()
	if link.client != nil {
		if hello, err := link.client.Hello(ctx); err == nil {
			a.greet(link, vm, hello)
			return link.client, nil
		}
		_ = link.client.Close() // it is lost anyway
		link.client = nil
	}
	conn, err := a.dialer.DialAgent(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("reach the agent of VM %q: %w", vm.Name, err)
	}
	client := agent.NewClient(conn, agent.ClientOptions{Fence: a.fence, Started: a.began})
	hello, err := client.Hello(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent of VM %q: %w", vm.Name, err), client.Close())
	}
	link.client = client
	a.greet(link, vm, hello)
	return client, nil
}

func (a *agents) greet(link *agentLink, vm target.VM, hello agent.Hello) {
	if hello.Boot != link.boot {
		link.boot = hello.Boot
		a.met(vm, hello)
	}
}

func (a *agents) link(vm string) (*agentLink, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, errors.New("the run has ended")
	}
	link := a.byVM[vm]
	if link == nil {
		link = &agentLink{}
		a.byVM[vm] = link
	}
	return link, nil
}

// close ends all connections. The VMs behind them are gone by then; what is left of theirs has nothing more to say.
func (a *agents) close() {
	a.mu.Lock()
	a.ended = true
	links := a.byVM
	a.byVM = nil
	a.mu.Unlock()
	for _, link := range links {
		link.mu.Lock()
		if link.client != nil {
			_ = link.client.Close()
			link.client = nil
		}
		link.mu.Unlock()
	}
}
