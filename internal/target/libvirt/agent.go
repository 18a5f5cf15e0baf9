package libvirt

import (
	"net"
	"slices"
	"sync"
)

// conn is a connection to an agent. It ends with the power of its VM, which a network would not tell.
type conn struct {
	net.Conn
	target *Target
	vm     string
	once   sync.Once
	err    error
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
