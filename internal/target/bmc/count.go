package bmc

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// count tracks which nodes are or may be off, so that no more are cut than the scenario declares.
type count struct {
	nodes *Nodes
	turn  chan struct{} // one token; its holder counts

	mu     sync.Mutex
	max    int
	fallen map[string]bool // cut by this program and not powered on since: off, or possibly off
	states map[string]target.PowerState
	readAt time.Time // of states
}

// countFresh is the maximum age of a reading of the other nodes. Nodes that are cut at the same time share readings instead
// of waiting for each other's.
const countFresh = 10 * time.Second

func newCount(n *Nodes) *count {
	c := &count{nodes: n, turn: make(chan struct{}, 1), fallen: map[string]bool{}}
	c.turn <- struct{}{}
	return c
}

func (c *count) limit(nodes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = nodes
}

// on removes a node that was powered on from the count.
func (c *count) on(nodeID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.fallen, nodeID)
	c.states = nil
}

// off counts a node that is already off.
func (c *count) off(nodeID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fallen[nodeID] = true
}

// fell reports whether a node counts as off because this program cut it.
func (c *count) fell(nodeID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fallen[nodeID]
}

// admit reads which other nodes are off, decides, and counts the node as off if it may be cut.
func (c *count) admit(ctx context.Context, nodeID string, cut PowerCut) (Verdict, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return Verdict{}, ended(ctx, cut.Node, "count the nodes that are off")
	}
	defer func() { c.turn <- struct{}{} }()
	c.refresh(ctx)
	if err := ctx.Err(); err != nil {
		return Verdict{}, ended(ctx, cut.Node, "count the nodes that are off")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cut.NodesOffMax = c.max
	for _, node := range c.nodes.config.Nodes {
		if node.BMC == nil || node.ID == nodeID {
			continue // without a BMC it cannot be cut; the health check finds out whether the target lacks it
		}
		// An unreadable node may be off.
		if c.fallen[node.ID] || c.states[node.ID] != target.PowerOn {
			cut.NodesOff = append(cut.NodesOff, nodeName(node))
		}
	}
	v := CheckPowerCut(cut, c.nodes.config.Allow.Overrides)
	if v.Err() == nil {
		c.fallen[nodeID] = true
	}
	return v, nil
}

// refresh reads the states of all nodes that this program has not cut itself, concurrently.
func (c *count) refresh(ctx context.Context) {
	c.mu.Lock()
	fresh := c.states != nil && time.Since(c.readAt) < countFresh
	var ask []string
	for id := range c.nodes.switches {
		if !c.fallen[id] {
			ask = append(ask, id)
		}
	}
	c.mu.Unlock()
	if fresh {
		return
	}
	states := make([]target.PowerState, len(ask))
	var wait sync.WaitGroup
	for i, id := range ask {
		wait.Go(func() {
			state, err := c.nodes.switches[id].State(ctx)
			if err != nil {
				state = target.PowerUnknown
			}
			states[i] = state
		})
	}
	wait.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states, c.readAt = map[string]target.PowerState{}, time.Now()
	for i, id := range ask {
		c.states[id] = states[i]
	}
}
