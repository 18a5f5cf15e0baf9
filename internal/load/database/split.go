package database

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// ClientVMs is on how many VMs clients of one server run.
func (p *Place) ClientVMs() int {
	switch {
	case !p.Split:
		return 1
	case p.remote.Serves:
		return len(p.remote.Peers)
	}
	return max(1, p.remote.Peers[0].Clients)
}

// Elsewhere reports whether the server is not one of this VM: an endpoint, or one on another VM.
func (p *Place) Elsewhere() bool { return p.Endpoint != "" || p.Split && !p.remote.Serves }

// Connected reports whether this VM has clients of a server that answers on another VM.
func (p *Place) Connected() bool { return p.remote.Connected() }

// Asks reports whether a load asks its server for counters: not that of an endpoint, and one of all VMs with clients.
func (p *Place) Asks() bool {
	return p.Endpoint == "" && (!p.Split || p.remote.Serves || p.remote.Peers[0].Place == 0)
}

// Password is that of clients on other VMs.
func (p *Place) Password() string { return hex.EncodeToString(p.remote.Secret) }

// Peer returns the settings of the server on another VM.
func (p *Place) Peer(role string) program.Endpoint {
	at := p.remote.Peers[0]
	return program.Endpoint{"host": at.Address, "port": strconv.Itoa(at.Port), "dbname": role, "user": role, "password": p.Password(), "sslmode": "disable"}
}

// Unreachable says that a server elsewhere does not answer.
func (p *Place) Unreachable(err error) error {
	if p.Connected() {
		return &diag.Error{Code: "server-unreachable", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("reach the server on vm %q, which answers there", p.remote.Peers[0].VM),
			Hint:    "let the VMs of its clients reach all ports of its VM"}
	}
	return &diag.Error{Code: "endpoint-unreachable", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("reach endpoint %q", p.Endpoint), Err: err}
}

// Address is where a server answers clients on other VMs; its zero value is that of a server with a socket only.
type Address struct{ Host, Port string }

// Listener is a server that can answer clients on other VMs.
type Listener interface {
	// Listen starts it at an address, and lets the clients of the load in.
	Listen(ctx context.Context, at Address) error
	// Taken reports whether Listen failed because another program has the port.
	Taken(err error) bool
	Ended() <-chan struct{}
	Outputs(name string) []load.Output
	Close() error
}

// serving is the end of a load that has its server; see load.Server.
type serving struct {
	server   Listener
	product  string
	workload load.Workload
	port     int
}

var (
	_ load.Instance = (*serving)(nil)
	_ load.Server   = (*serving)(nil)
	_ load.Teller   = (*serving)(nil)
)

// portTries bounds how often a port is chosen: another program may take it before the server does.
const portTries = 3

// Serve starts a server, such as a "PostgreSQL", for the clients of a load on other VMs. It was opened with that error, and the instance
// closes it; after an error Serve does.
func Serve(ctx context.Context, w load.Workload, product string, server Listener, err error) (load.Instance, error) {
	s := &serving{server: server, product: product, workload: w}
	if err == nil && len(w.Remote.Secret) == 0 {
		err = errors.New("the load has no secret for its clients")
	}
	if err == nil {
		err = s.answer(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare workload %q: %w", w.Name, err), server.Close())
	}
	return s, nil
}

// answer starts the server on a free port.
func (s *serving) answer(ctx context.Context) error {
	for try := 1; ; try++ {
		host, port, err := program.FreePort(s.workload.Remote.Address)
		if err != nil {
			return err
		}
		if host == "" {
			host = "*"
		}
		if err = s.server.Listen(ctx, Address{host, strconv.Itoa(port)}); err == nil {
			s.port = port
			return nil
		}
		if try == portTries || !s.server.Taken(err) {
			return err
		}
	}
}

// Ports is the port of the server for each of its clients; see load.Server.
func (s *serving) Ports() []int {
	ports := make([]int, len(s.workload.Remote.Peers))
	for i := range ports {
		ports[i] = s.port
	}
	return ports
}

// Run waits until the server is stopped; it is not measured.
func (s *serving) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = s.Close() }()
	return program.Serve(ctx, s.workload, sink, s.product, s.server.Ended())
}

// Close stops the server and lets other loads use its data.
func (s *serving) Close() error { return s.server.Close() }

// Outputs has the commands and the server's log; see load.Teller.
func (s *serving) Outputs() []load.Output { return s.server.Outputs("server.txt") }

// Quote quotes a text for a statement; servers must take a backslash in it for itself.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
