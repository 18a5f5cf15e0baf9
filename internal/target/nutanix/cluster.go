package nutanix

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// node is a host of the cluster.
type node struct {
	id     string // in the target file, or Prism's id of the host
	name   string
	host   ahv.Host          // as it was when the list was read
	config target.NodeConfig // zero: not in the target file
}

// cluster is the cluster with its hosts.
type cluster struct {
	config    target.Config
	settings  settings
	client    *prism.Client
	templates *templates
	addresses *address.Allocator
	bmcs      *bmc.Nodes // nil: no node has a BMC
	closed    atomic.Bool
	sought    atomic.Bool // the lease: a run has begun, or what it left is removed
	runs      marks
	settled   marks // runs of which no request for a VM is under way
	quicken   int   // divides pauses, in tests

	mu        sync.Mutex // held while the cluster is found
	ahv       *ahv.Cluster
	nodes     []*node
	container ahv.Container
}

// points are the recovery points of VMs.
func (c *cluster) points() ahv.Protection { return ahv.Protection{Cluster: c.ahv} }

// usable returns why the target cannot be used any more.
func (c *cluster) usable(ctx context.Context) error {
	if c.closed.Load() {
		return errClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// known returns the nodes in the order of node slices, from the first call on without their current state.
func (c *cluster) known(ctx context.Context) ([]*node, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes != nil {
		return c.nodes, nil
	}
	found, err := ahv.Find(ctx, c.client, c.settings.cluster)
	if err != nil {
		return nil, err
	}
	if c.ahv = found; c.quicken > 1 {
		c.ahv.Sampling = time.Second
	}
	if c.container, err = found.Container(ctx, c.settings.pool); err != nil {
		return nil, err
	}
	hosts, err := found.Hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	c.nodes, err = arrange(hosts, c.config.Nodes)
	return c.nodes, err
}

// fresh returns the nodes with their current state. Hosts that joined the cluster meanwhile are left out.
func (c *cluster) fresh(ctx context.Context) ([]*node, error) {
	nodes, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := c.ahv.Hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	now := make([]*node, len(nodes))
	for i, n := range nodes {
		one := *n
		k := slices.IndexFunc(hosts, func(h ahv.Host) bool { return h.ExtID == n.host.ExtID })
		if one.host.Hypervisor.State = "not in the cluster any more"; k >= 0 {
			one.host = hosts[k]
		}
		now[i] = &one
	}
	return now, nil
}

// arrange orders hosts: those of the target file first, as it lists them, then the others by name.
func arrange(hosts []ahv.Host, listed []target.NodeConfig) ([]*node, error) {
	var nodes []*node
	taken := map[string]bool{}
	for _, nc := range listed {
		i := slices.IndexFunc(hosts, func(h ahv.Host) bool {
			return h.ExtID == nc.ID || h.Name == nc.ID || nc.Name != "" && h.Name == nc.Name
		})
		if i < 0 || taken[hosts[i].ExtID] {
			var names []string
			for _, h := range hosts {
				names = append(names, h.Name)
			}
			return nil, &diag.Error{
				Code: "nutanix-host", Exit: diag.ExitData, Message: fmt.Sprintf("find host %q: the cluster has %s", nc.ID, strings.Join(names, ", ")),
				Hint: "each node of the target file is the id or the name of another host; without \"nodes\" all hosts are found",
			}
		}
		taken[hosts[i].ExtID] = true
		nodes = append(nodes, &node{id: nc.ID, name: cmp.Or(nc.Name, hosts[i].Name, nc.ID), host: hosts[i], config: nc})
	}
	found := len(nodes)
	for _, h := range hosts {
		if !taken[h.ExtID] {
			nodes = append(nodes, &node{id: h.ExtID, name: cmp.Or(h.Name, h.ExtID), host: h})
		}
	}
	slices.SortFunc(nodes[found:], func(a, b *node) int { return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.id, b.id)) })
	if len(nodes) == 0 {
		return nil, &diag.Error{Code: "target-no-nodes", Exit: diag.ExitUnavailable, Message: "the cluster has no hosts"}
	}
	return nodes, nil
}

// of finds a node by its id.
func of(nodes []*node, id string) (*node, error) {
	for _, n := range nodes {
		if n.id == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("find node %q: no such node", id)
}

// byHost finds the node of a host of Prism; nil: there is none.
func byHost(nodes []*node, host string) *node {
	for _, n := range nodes {
		if host != "" && n.host.ExtID == host {
			return n
		}
	}
	return nil
}

// node returns a node with its current state.
func (c *cluster) node(ctx context.Context, id string) (*node, error) {
	nodes, err := c.fresh(ctx)
	if err != nil {
		return nil, err
	}
	return of(nodes, id)
}

// up returns why VMs cannot run on a node.
func (n *node) up() error {
	if why := n.host.Trouble(); why != "" {
		return fmt.Errorf("node %q: %s", n.name, why)
	}
	return nil
}

// HostUp returns nil when Prism finds the node able to run VMs.
func (c *cluster) HostUp(ctx context.Context, nodeID string) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	return n.up()
}

// Ready returns nil when all hosts run and the cluster tolerates the failures that it should.
func (c *cluster) Ready(ctx context.Context) error {
	nodes, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.up(); err != nil {
			return err
		}
	}
	_, err = c.resilient(ctx)
	return err
}

// resilient describes the failures that the cluster tolerates now; an error says that they are too few.
func (c *cluster) resilient(ctx context.Context) (string, error) {
	s, err := c.ahv.State(ctx)
	if err != nil {
		return "", err
	}
	if a := s.Config.Available; a != nil && !*a {
		return "", fmt.Errorf("cluster %q is not available", s.Name)
	}
	tolerance := s.Config.Tolerance
	if tolerance.Max == nil {
		return "Prism does not say how many failures the cluster tolerates", nil
	}
	want := 1
	if tolerance.Desired != nil {
		want = *tolerance.Desired
	}
	if *tolerance.Max < want {
		return "", fmt.Errorf("cluster %q tolerates %d failures now and should tolerate %d", s.Name, *tolerance.Max, want)
	}
	return fmt.Sprintf("the cluster tolerates %d failures", *tolerance.Max), nil
}

// DatastoreVisible returns nil when the cluster has a storage container of that name: it is mounted on all hosts.
func (c *cluster) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	if _, err := c.ahv.Container(ctx, datastore); err != nil {
		return err
	}
	return n.up()
}

// NodeSpace returns the capacity and the free space of the storage container.
func (c *cluster) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	nodes, err := c.known(ctx)
	if err != nil {
		return target.Space{}, err
	}
	if _, err := of(nodes, nodeID); err != nil {
		return target.Space{}, err
	}
	free, total, err := c.ahv.Space(ctx, c.container.Key())
	if err != nil {
		return target.Space{}, fmt.Errorf("read the space of storage container %q: %w", c.container.Name, err)
	}
	return target.Space{
		Storage: c.container.Key(), Place: fmt.Sprintf("storage container %q", c.container.Name), FreeBytes: free, TotalBytes: total,
	}, nil
}

// marks are those of the runs that used this target: they created VMs, or listed theirs. The zero value is ready for use.
type marks struct{ known sync.Map }

func (m *marks) add(tag target.Tag) { m.known.Store(tag.Mark(), true) }

func (m *marks) has(tag target.Tag) bool {
	_, ok := m.known.Load(tag.Mark())
	return ok
}

// owns reports whether a VM is of one of the runs.
func (m *marks) owns(one *info) (ours bool) {
	m.known.Range(func(mark, _ any) bool {
		ours = ours || one.ownedBy(mark.(string))
		return !ours
	})
	return ours
}
