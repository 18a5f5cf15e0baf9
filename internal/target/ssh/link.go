package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// host is one node: its address, and the connection to it if there is one.
type host struct {
	node    target.Node
	address sshlink.Host
	place   hostvm.Place
	remote  *sshlink.Remote

	connecting chan struct{} // one token; its holder may connect

	mu     sync.Mutex
	client *hostvm.Client
	closed bool
}

func newHost(n target.NodeConfig, p hostvm.Place, remote *sshlink.Remote) (*host, error) {
	where := n.Address
	if where == "" {
		where = n.ID
	}
	address, err := sshlink.ParseHost(where)
	if err != nil {
		return nil, err
	}
	p.NodeID, p.Address = n.ID, address.Address
	name := n.Name
	if name == "" {
		name = n.ID
	}
	return &host{
		node:    target.Node{ID: n.ID, Name: name, Address: address.Address, HasBMC: n.BMC != nil},
		address: address, remote: remote, connecting: make(chan struct{}, 1),
		place: p,
	}, nil
}

var errClosed = errors.New("the target is closed")

// connection returns the current connection, or makes one.
func (h *host) connection(ctx context.Context) (*hostvm.Client, error) {
	select {
	case h.connecting <- struct{}{}:
		defer func() { <-h.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	client, closed := h.client, h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if client != nil {
		select {
		case <-client.Gone():
			_ = client.Close()
		default:
			return client, nil
		}
	}
	client, err := hostvm.Connect(ctx, h.address, h.remote, h.place)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.Join(errClosed, client.Close())
	}
	h.client = client
	return client, nil
}

// call requests one operation from the host. Operations on existing objects are repeated over a new connection when the
// connection fails, because they may safely be done twice; others are not.
func (h *host) call(ctx context.Context, r hostvm.Request) (hostvm.Reply, error) {
	var reply hostvm.Reply
	err := h.over(ctx, repeatable(r.Operation), func(c *hostvm.Client) error {
		var err error
		reply, err = c.Call(ctx, r)
		return err
	})
	return reply, err
}

// over calls do with the connection, and once more with a new one if the connection failed in between.
func (h *host) over(ctx context.Context, again bool, do func(c *hostvm.Client) error) error {
	for {
		client, err := h.connection(ctx)
		if err != nil {
			return err
		}
		err = do(client)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("ask host %q: %w", h.address.Name, context.Cause(ctx))
		}
		var stopped *target.StoppedError
		if errors.As(err, &stopped) {
			return &target.StoppedError{VM: stopped.VM, Reason: textio.Line(stopped.Reason), At: stopped.At, Uncertain: stopped.Uncertain}
		}
		if !again || !errors.Is(err, rpc.ErrLost) {
			return sshlink.HostError(h.address, err, "")
		}
		again = false
		_ = client.Close() // it may not have noticed the failure yet
	}
}

// repeatable reports whether an operation may be done twice: creating VMs and snapshots may not.
func repeatable(o hostvm.Operation) bool {
	switch o {
	case hostvm.OpCreate, hostvm.OpClone, hostvm.OpSnapshot:
		return false
	}
	return true
}

func (h *host) dial(ctx context.Context, tag target.Tag, vm target.VM) (net.Conn, error) {
	var conn net.Conn
	err := h.over(ctx, true, func(c *hostvm.Client) error {
		var err error
		conn, err = c.Dial(ctx, tag, vm)
		return err
	})
	return conn, err
}

// drop closes and removes the connection to a host that is gone.
func (h *host) drop() {
	if c := h.take(); c != nil {
		_ = c.Close() // the agent is gone: there is no orderly shutdown
	}
}

// take removes and returns the connection, nil if there is none.
func (h *host) take() *hostvm.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.client
	h.client = nil
	return c
}

func (h *host) close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	if c := h.take(); c != nil {
		return c.Close()
	}
	return nil
}
