// Package agentlink connects to agents of VMs over a network, for all providers whose VMs have addresses.
//
//	DialAgent ──▶ MayAnswer: can the VM answer at all? ──▶ AddressOf ──▶ Dial ──▶ handshake: is it this VM's agent? ──▶ Conn
//	HangUp    ──▶ ends the connections to a VM that has lost its power, which the network does not report
package agentlink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// A guest boots while its agent is dialled.
const (
	dialAgain    = 300 * time.Millisecond
	dialCheck    = 5 * time.Second // how often the VM itself is checked meanwhile
	handshakeMax = 10 * time.Second
)

// ErrClosed is the error of a closed Dialer.
var ErrClosed = errors.New("the target is closed")

// Dialer connects to agents. Its exported fields are set before the first call; it must not be copied afterwards.
type Dialer struct {
	// Authority is that of the run; nil: this program cannot reach agents.
	Authority *trust.Authority
	// AddressOf returns the address of a VM that is on, without a port.
	AddressOf func(ctx context.Context, vm target.VM) (string, error)
	// MayAnswer returns why the agent cannot answer, a *target.StoppedError where dialling again is pointless. failed: an
	// attempt has failed before. Nil: every agent may answer.
	MayAnswer func(ctx context.Context, vm target.VM, failed bool) error
	// Heard is called with the id of a VM whenever its agent has sent something. It may be nil.
	Heard func(id string)
	// Dial connects to an address with a port; nil: by TCP.
	Dial func(ctx context.Context, vm target.VM, address string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	conns  map[string][]*conn // by VM
}

// DialAgent connects to the agent of a VM, as soon as it answers, and verifies that it is the agent of that VM.
func (d *Dialer) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	if d.Authority == nil {
		return nil, errors.New("dial agent: this program has no identity that agents accept")
	}
	var last error
	var checked time.Time
	for {
		if d.MayAnswer != nil && time.Since(checked) > dialCheck {
			if err := d.MayAnswer(ctx, vm, last != nil); err != nil {
				return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(err, last))
			}
			checked = time.Now()
		}
		c, err := d.dialOnce(ctx, vm)
		if err == nil {
			return c, nil
		}
		last = err
		if errors.Is(err, ErrClosed) {
			return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
		}
		if wait.For(ctx, dialAgain) != nil {
			return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(context.Cause(ctx), last))
		}
	}
}

func (d *Dialer) dialOnce(ctx context.Context, vm target.VM) (net.Conn, error) {
	ip, err := d.AddressOf(ctx, vm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeMax)
	defer cancel()
	plain, err := d.dial(ctx, vm, net.JoinHostPort(ip, strconv.Itoa(address.AgentPort)))
	if err != nil {
		return nil, err
	}
	secure := tls.Client(plain, d.Authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, &diag.Error{
			Code: "agent-identity", Message: fmt.Sprintf("%s answers, but is not the agent of vm %q", ip, vm.Name), Err: err,
		}
	}
	d.heard(vm.ID)
	c := &conn{Conn: secure, dialer: d, vm: vm.ID}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = plain.Close()
		return nil, ErrClosed
	}
	if d.conns == nil {
		d.conns = map[string][]*conn{}
	}
	d.conns[vm.ID] = append(d.conns[vm.ID], c)
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, vm target.VM, address string) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, vm, address)
	}
	var plain net.Dialer
	return plain.DialContext(ctx, "tcp", address)
}

func (d *Dialer) heard(id string) {
	if d.Heard != nil {
		d.Heard(id)
	}
}

// HangUp ends the connections to the agent of a VM that has lost its power.
func (d *Dialer) HangUp(id string) {
	d.mu.Lock()
	open := slices.Clone(d.conns[id])
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// Close ends all connections, and allows no new one.
func (d *Dialer) Close() {
	d.mu.Lock()
	d.closed = true
	open := slices.Concat(slices.Collect(maps.Values(d.conns))...)
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// conn is a connection to an agent. It ends with the power of its VM.
type conn struct {
	*tls.Conn
	dialer *Dialer
	vm     string
	once   sync.Once
	err    error
}

// By this its user knows that it is over a network.
var _ interface{ ConnectionState() tls.ConnectionState } = (*conn)(nil)

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.dialer.heard(c.vm)
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		d := c.dialer
		d.mu.Lock()
		defer d.mu.Unlock()
		left := slices.DeleteFunc(d.conns[c.vm], func(o *conn) bool { return o == c })
		if d.conns[c.vm] = left; len(left) == 0 {
			delete(d.conns, c.vm)
		}
	})
	return c.err
}
