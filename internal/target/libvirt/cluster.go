package libvirt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// node is one host, with its connection, domains and pool.
type node struct {
	*virsh.Host
	config  target.NodeConfig
	domains *domain.Client
	store   *storage.Store
}

func (n *node) name() string {
	if n.config.Name != "" {
		return n.config.Name
	}
	return n.ID
}

// cluster is the hosts.
type cluster struct {
	nodes  []*node
	pool   string // name, as the target file spells it
	closed atomic.Bool
	runs   marks
}

// usable returns why the target cannot be used any more.
func (c *cluster) usable(ctx context.Context) error {
	if c.closed.Load() {
		return virsh.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// node returns the node with that id, unless the target is closed.
func (c *cluster) node(ctx context.Context, id string) (*node, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if n.ID == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("find node %q: no such node", id)
}

// Ready returns nil when every host answers and has its pool.
func (c *cluster) Ready(ctx context.Context) error {
	return target.Each(ctx, len(c.nodes), func(i int) error { return c.DatastoreVisible(ctx, c.nodes[i].ID, c.pool) })
}

// HostUp returns nil when libvirt answers on the node, now and at the first call: callers that wait for a node poll.
func (c *cluster) HostUp(ctx context.Context, nodeID string) error {
	n, err := c.node(ctx, nodeID)
	if err == nil {
		_, err = n.Run(ctx, virsh.Call{Args: []string{"nodeinfo"}, Limit: virsh.SilentLimit})
	}
	return err
}

// DatastoreVisible returns nil when the node has an active pool of that name.
func (c *cluster) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	info, err := n.Query(ctx, "pool-info", "--pool="+datastore)
	if err != nil {
		return err
	}
	if state := virsh.ParsePairs(info)["State"]; state != "running" {
		return fmt.Errorf("node %q: pool %q is %s", nodeID, datastore, state)
	}
	return nil
}

// NodeSpace returns the capacity and the free space of the node's pool.
func (c *cluster) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return target.Space{}, err
	}
	p, err := n.store.Fresh(ctx)
	if err != nil {
		return target.Space{}, fmt.Errorf("read the space of pool %q: %w", c.pool, err)
	}
	return target.Space{
		Storage: p.Storage(), Place: fmt.Sprintf("pool %q", p.Name), FreeBytes: p.Available, TotalBytes: p.Capacity,
	}, nil
}

// Lock takes the leases of all hosts.
func (c *cluster) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	places := make([]lease.Place, len(c.nodes))
	for i, n := range c.nodes {
		places[i] = leased{n}
	}
	group, err := lease.Together(ctx, h, places)
	if err != nil {
		return nil, err
	}
	return group, nil
}

// leased is the lease of a host, which is a secret of its libvirt.
type leased struct{ node *node }

func (p leased) Name() string { return p.node.name() }

func (p leased) Identity(ctx context.Context) (string, error) {
	host, err := p.node.Facts(ctx)
	return host.UUID, err
}

func (p leased) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	a, err := p.node.secrets().Take(ctx, o)
	if err != nil {
		return a, fmt.Errorf("node %q: %w", p.node.ID, err)
	}
	return a, nil
}

func (p leased) Drop(ctx context.Context, id string) error { return p.node.secrets().Drop(ctx, id) }

func (n *node) secrets() lease.Secrets { return lease.Secrets{Query: n.Query, Change: n.Apply} }

// marks are those of the run, or runs, that used this target: they created VMs, or listed theirs. The zero value is ready for use.
type marks struct{ known sync.Map }

func (m *marks) add(tag target.Tag) { m.known.Store(tag.Mark(), true) }

func (m *marks) has(mark string) bool {
	_, ok := m.known.Load(mark)
	return ok
}
