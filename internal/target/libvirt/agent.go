package libvirt

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
	"github.com/braggdev/bragg/internal/target/libvirt/address"
	"github.com/braggdev/bragg/internal/target/libvirt/events"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// A guest boots while its agent is dialled.
const (
	dialAgain    = 300 * time.Millisecond
	dialCheck    = 5 * time.Second // how often the VM itself is checked meanwhile
	handshakeMax = 10 * time.Second
)

// agents are the connections to agents of VMs.
type agents struct {
	cluster   *cluster
	authority *trust.Authority // nil: this program cannot reach agents
	listener  *events.Listener // from the first call on
	surveys   sharedSurvey     // of callers who dial

	mu     sync.Mutex
	closed bool
	conns  map[string][]*conn // by VM
}

// DialAgent connects to the agent of a VM, as soon as it answers, and verifies that it is the agent of that VM.
func (a *agents) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	if a.authority == nil {
		return nil, errors.New("dial agent: this program has no identity that agents accept")
	}
	a.listen()
	var last error
	var checked time.Time
	for {
		if time.Since(checked) > dialCheck {
			if err := a.mayAnswer(ctx, vm, last != nil); err != nil {
				return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(err, last))
			}
			checked = time.Now()
		}
		c, err := a.dialOnce(ctx, vm)
		if err == nil {
			return c, nil
		}
		last = err
		if wait.For(ctx, dialAgain) != nil {
			return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, errors.Join(context.Cause(ctx), last))
		}
	}
}

// listen begins to listen to the events of all nodes, once, and hangs up on agents of VMs that stop, so that no caller waits for them.
func (a *agents) listen() {
	hosts := make([]*virsh.Host, len(a.cluster.nodes))
	for i, n := range a.cluster.nodes {
		hosts[i] = n.Host
	}
	a.listener.Listen(hosts, a.hangUp)
}

func (a *agents) dialOnce(ctx context.Context, vm target.VM) (net.Conn, error) {
	ip, err := a.AddressOf(ctx, vm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeMax)
	defer cancel()
	var d net.Dialer
	plain, err := d.DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(address.AgentPort)))
	if err != nil {
		return nil, err
	}
	secure := tls.Client(plain, a.authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, &diag.Error{
			Code: "agent-identity", Message: fmt.Sprintf("%s answers, but is not the agent of vm %q", ip, vm.Name), Err: err,
		}
	}
	a.listener.Heard(vm.ID)
	c := &conn{Conn: secure, agents: a, vm: vm.ID}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		_ = plain.Close()
		return nil, virsh.ErrClosed
	}
	a.conns[vm.ID] = append(a.conns[vm.ID], c)
	return c, nil
}

// AddressOf returns the address that was given to a VM, or that it got by DHCP; see target.Addresser.
func (a *agents) AddressOf(ctx context.Context, vm target.VM) (string, error) {
	if len(vm.Addresses) > 0 {
		return vm.Addresses[0], nil
	}
	n, err := a.cluster.node(ctx, vm.NodeID)
	if err != nil {
		return "", err
	}
	ip, err := address.Of(ctx, n.Host, vm.ID)
	if err == nil && ip == "" {
		err = fmt.Errorf("node %q knows no address of it yet", n.ID)
	}
	return ip, err
}

// conn is a connection to an agent. It ends with the power of its VM, which the network does not report.
type conn struct {
	*tls.Conn
	agents *agents
	vm     string
	once   sync.Once
	err    error
}

// By this its user knows that it is over a network.
var _ interface{ ConnectionState() tls.ConnectionState } = (*conn)(nil)

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.agents.listener.Heard(c.vm)
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.agents.mu.Lock()
		defer c.agents.mu.Unlock()
		left := slices.DeleteFunc(c.agents.conns[c.vm], func(o *conn) bool { return o == c })
		if c.agents.conns[c.vm] = left; len(left) == 0 {
			delete(c.agents.conns, c.vm)
		}
	})
	return c.err
}

// hangUp ends the connections to the agent of a VM that has lost its power.
func (a *agents) hangUp(id string) {
	a.mu.Lock()
	open := slices.Clone(a.conns[id])
	a.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// close ends all connections, and allows no new one.
func (a *agents) close() {
	a.mu.Lock()
	a.closed = true
	open := slices.Concat(slices.Collect(maps.Values(a.conns))...)
	a.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	a.listener.Close()
}
