package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// A load between two groups has its servers prepared on the VMs of the other group before its clients are. A server answers from
// then on; its ports are passed to its clients. It ends when the last client has ended, however that was, or with its agent.

// serve prepares the servers of a load, and gives its clients their peers. A client without its servers has their error.
func (l *loads) serve(ctx context.Context, run *loadRun, w plan.Workload) {
	if len(run.servers) == 0 {
		return
	}
	l.address(ctx, run)
	run.share()
	for i, client := range run.members {
		for _, at := range w.Servers.Of(i, len(run.servers)) {
			server := run.servers[at]
			client.serving = append(client.serving, server)
			server.remote.Peers = append(server.remote.Peers, load.Peer{VM: client.vm.Name, Address: client.remote.Address})
		}
	}
	var wait sync.WaitGroup
	for _, s := range run.servers {
		if s.remote.Serves = true; s.err != nil || len(s.remote.Peers) == 0 {
			continue
		}
		wait.Go(func() {
			// Stopping the load must not take the servers away before the clients have ended.
			s.held, s.err = hold(context.WithoutCancel(ctx), s.runner, l.value(run, s, w), load.SinkFunc(func(interval.Interval) {}))
		})
	}
	wait.Wait()
	used := map[*member]int{}
	for _, client := range run.members {
		for _, s := range client.serving {
			if s.err == nil {
				ports, ok := s.held.(load.Server)
				if !ok || used[s] >= len(ports.Ports()) {
					s.err = errors.New("its agent cannot run servers")
				} else {
					client.remote.Peers = append(client.remote.Peers, load.Peer{VM: s.vm.Name, Address: s.remote.Address, Port: ports.Ports()[used[s]],
						Place: used[s], Clients: len(s.remote.Peers)})
					used[s]++
				}
			}
			if s.err != nil {
				client.err = fmt.Errorf("server on vm %q: %w", s.vm.Name, s.err)
			}
		}
		if w.Servers.First {
			client.serving = run.servers // each VM depends on all others
		}
	}
}

// share gives the VMs of a load and its servers their places, and a secret.
func (run *loadRun) share() {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // which never fails
	for _, list := range [][]*member{run.members, run.servers} {
		for i, m := range list {
			m.remote.VMs, m.remote.Rank, m.remote.Secret = len(run.members), i, secret
		}
	}
}

// secretBytes is the length of what only the VMs of one load know.
const secretBytes = 32

// address finds the addresses of clients and servers.
func (l *loads) address(ctx context.Context, run *loadRun) {
	addresser, ok := l.engine.cfg.Target.(target.Addresser)
	for _, list := range [][]*member{run.members, run.servers} {
		for _, m := range list {
			if !ok {
				m.err = fmt.Errorf("the target knows no addresses of VMs")
			} else if m.remote.Address, m.err = addresser.AddressOf(ctx, m.vm); m.err != nil {
				m.err = fmt.Errorf("find the address of vm %q: %w", m.vm.Name, m.err)
			}
		}
	}
}

// nameServer adds the server of a client that failed, which may be the cause, unless its own agent was lost.
func (m *member) nameServer() {
	if len(m.serving) == 1 && m.serving[0].err == nil && !errors.Is(m.err, load.ErrLost) {
		m.err = fmt.Errorf("with its server on vm %q: %w", m.serving[0].vm.Name, m.err)
	}
}

// dismiss ends the servers.
func (run *loadRun) dismiss() {
	var wait sync.WaitGroup
	for _, s := range run.servers {
		if s.held != nil {
			wait.Go(s.held.Discard)
		}
	}
	wait.Wait()
}
