package libvirt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// A guest boots while its agent is dialled.
const (
	dialAgain     = 300 * time.Millisecond
	dialLook      = 5 * time.Second // how often the VM itself is looked at meanwhile
	handshakeTime = 10 * time.Second
)

// DialAgent connects to the agent of a VM, as soon as there is one, and makes sure that it is the one that was meant.
func (t *Target) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	if t.options.Authority == nil {
		return nil, errors.New("dial agent: this program has no identity that agents know")
	}
	t.listen()
	var last error
	var looked time.Time
	for {
		if time.Since(looked) > dialLook {
			if err := t.mayAnswer(ctx, vm, last != nil); err != nil {
				return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(err, last))
			}
			looked = time.Now()
		}
		c, err := t.dialOnce(ctx, vm)
		if err == nil {
			return c, nil
		}
		last = err
		select {
		case <-time.After(dialAgain):
		case <-ctx.Done():
			return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(context.Cause(ctx), last))
		}
	}
}

func (t *Target) dialOnce(ctx context.Context, vm target.VM) (net.Conn, error) {
	address, err := t.addressOf(ctx, vm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	var d net.Dialer
	plain, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(agentPort)))
	if err != nil {
		return nil, err
	}
	secure := tls.Client(plain, t.options.Authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, &diag.Error{
			Code: "agent-identity", Message: fmt.Sprintf("who answers at %s is not the agent of vm %q", address, vm.Name), Err: err,
		}
	}
	t.listener.hear(vm.ID)
	c := &conn{Conn: secure, target: t, vm: vm.ID}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = plain.Close()
		return nil, errClosed
	}
	t.conns[vm.ID] = append(t.conns[vm.ID], c)
	return c, nil
}

// addressOf returns the address that was given to a VM, or that it got by DHCP.
func (t *Target) addressOf(ctx context.Context, vm target.VM) (string, error) {
	if len(vm.Addresses) > 0 {
		return vm.Addresses[0], nil
	}
	n, err := t.node(vm.NodeID)
	if err != nil {
		return "", err
	}
	a, err := n.lookUp(ctx, vm.ID)
	if err == nil && a == "" {
		err = fmt.Errorf("node %q knows no address of it yet", n.id)
	}
	return a, err
}

// conn is a connection to an agent. It ends with the power of its VM, which a network would not tell.
type conn struct {
	*tls.Conn
	target *Target
	vm     string
	once   sync.Once
	err    error
}

// By this whoever uses it knows that it is over a network.
var _ interface{ ConnectionState() tls.ConnectionState } = (*conn)(nil)

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.target.listener.hear(c.vm)
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.target.mu.Lock()
		defer c.target.mu.Unlock()
		left := slices.DeleteFunc(c.target.conns[c.vm], func(o *conn) bool { return o == c })
		if c.target.conns[c.vm] = left; len(left) == 0 {
			delete(c.target.conns, c.vm)
		}
	})
	return c.err
}

// hangUp ends the connections to the agent of a VM that has lost its power.
func (t *Target) hangUp(id string) {
	t.mu.Lock()
	open := slices.Clone(t.conns[id])
	t.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}
