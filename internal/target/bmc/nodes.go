package bmc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Survey has the facts about a node that only the provider can know.
type Survey struct {
	Machine    Identity // identity that the node itself reports, not its BMC
	SameAs     []string // other nodes, by name, that are the same machine
	VMsListed  bool
	ForeignVMs []string
	Controller Answer
	// Redundant is also Yes if the target lacks only the nodes that this run itself has switched off: their number has its
	// own limit.
	Redundant Answer
	Health    string
}

// Surveyor collects the facts about a node before each cut, because the facts change.
type Surveyor interface {
	Survey(ctx context.Context, nodeID string) (Survey, error)
}

// Nodes are the BMCs of a target. A provider embeds it as its target.NodePower; every power cut goes through CheckPowerCut.
type Nodes struct {
	config   target.Config
	surveyor Surveyor
	switches map[string]*Switch // by id of the node
	count    *count

	mu       sync.Mutex
	facts    []target.Fact
	machines map[string]Identity // found by surveys, by id of the node
}

var (
	_ target.NodePower   = (*Nodes)(nil)
	_ target.NodeLimiter = (*Nodes)(nil)
	_ target.OutOfBand   = (*Nodes)(nil)
)

// OpenNodes prepares all BMCs of a target file. It does not connect.
func OpenNodes(ctx context.Context, c target.Config, s Surveyor) (*Nodes, error) {
	n := &Nodes{config: c, surveyor: s, switches: map[string]*Switch{}, machines: map[string]Identity{}}
	n.count = newCount(n)
	var errs []error
	for _, node := range c.Nodes {
		if node.BMC == nil {
			continue
		}
		s, err := Open(ctx, nodeName(node), c, *node.BMC)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n.switches[node.ID] = s
	}
	return n, errors.Join(errs...)
}

// Tune sets the options of all switches before their first use: simulated BMCs need less patience than real ones. n may be nil.
func (n *Nodes) Tune(o Options) {
	if n == nil {
		return
	}
	for _, s := range n.switches {
		s.o = o.defaults()
	}
}

func nodeName(n target.NodeConfig) string {
	if n.Name != "" {
		return n.Name
	}
	return n.ID
}

// BMCNodes lists the nodes with a BMC; see target.OutOfBand.
func (n *Nodes) BMCNodes() []target.NodeConfig {
	return slices.DeleteFunc(slices.Clone(n.config.Nodes), func(node target.NodeConfig) bool { return node.BMC == nil })
}

// LimitNodesOff sets how many nodes the scenario declares to be off at the same time. Until it is called, no node is cut.
func (n *Nodes) LimitNodesOff(count int) { n.count.limit(count) }

// Facts lists facts for the report: insecure connections to BMCs, checks that the owner disabled, and cuts despite a failed
// check. n may be nil: no node has a BMC.
func (n *Nodes) Facts() []target.Fact {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return append(StaticFacts(n.config), n.facts...)
}

// StaticFacts is the part of Facts that follows from the target file alone.
func StaticFacts(c target.Config) []target.Fact {
	var facts []target.Fact
	for _, node := range c.Nodes {
		if node.BMC == nil {
			continue
		}
		if text := exposure(*node.BMC); text != "" {
			facts = append(facts, target.Fact{Name: fmt.Sprintf("TLS of the BMC of node %q", nodeName(node)), Value: text})
		}
	}
	for _, name := range c.Allow.Overrides {
		facts = append(facts, target.Fact{Name: "override " + name, Value: "power cuts are made without this check"})
	}
	return facts
}

// NodePowerState reads the state of a node from its BMC.
func (n *Nodes) NodePowerState(ctx context.Context, nodeID string) (target.PowerState, error) {
	s, err := n.of(nodeID)
	if err != nil {
		return target.PowerUnknown, err
	}
	return s.State(ctx)
}

// PowerOnNode powers a node on. It needs permission, but no proof that the BMC belongs to the node.
func (n *Nodes) PowerOnNode(ctx context.Context, nodeID string) error {
	s, err := n.of(nodeID)
	if err != nil {
		return err
	}
	if !n.config.Allow.NodePower {
		return target.PowerForbidden(nodeID)
	}
	if err := s.On(ctx); err != nil {
		return err
	}
	n.count.on(nodeID)
	return nil
}

// PowerOffNode cuts the power of a node if CheckPowerCut allows it.
func (n *Nodes) PowerOffNode(ctx context.Context, nodeID string) error {
	return n.down(ctx, nodeID, (*Switch).Off)
}

// ShutdownNode requests a shutdown of a node's operating system and waits until the node is off. The same checks as for a
// cut apply, because the result is the same: the node is off.
func (n *Nodes) ShutdownNode(ctx context.Context, nodeID string) error {
	return n.down(ctx, nodeID, (*Switch).Soft)
}

// Foresee returns what would block a power cut now, except what the target file overrides. It sends no requests to BMCs.
func (n *Nodes) Foresee(ctx context.Context, nodeID string) (target.PowerCutForesight, error) {
	survey, err := n.surveyor.Survey(ctx, nodeID)
	seen := target.PowerCutForesight{Foreign: survey.ForeignVMs, SameAs: survey.SameAs}
	if slices.Contains(n.config.Allow.Overrides, target.OverrideForeignVMs) {
		seen.Foreign = nil
	}
	if slices.Contains(n.config.Allow.Overrides, target.OverrideIdentity) {
		seen.SameAs = nil
	}
	return seen, err
}

func (n *Nodes) of(nodeID string) (*Switch, error) {
	if s, ok := n.switches[nodeID]; ok {
		return s, nil
	}
	return nil, &diag.Error{
		Code: CodeLacks, Exit: diag.ExitUnavailable, Message: fmt.Sprintf("switch node %q: it has no BMC", nodeID),
		Hint: "add one to the target file: bmc: {protocol: redfish, address: …, credential: …}",
	}
}

func (n *Nodes) down(ctx context.Context, nodeID string, act func(*Switch, context.Context) error) error {
	s, err := n.of(nodeID)
	if err != nil {
		return err
	}
	if !n.config.Allow.NodePower {
		return target.PowerForbidden(nodeID)
	}
	switch state, err := s.State(ctx); {
	case err != nil:
		return err
	case state == target.PowerOff:
		// There is no power to cut, and a node that is off cannot report its identity.
		n.count.off(nodeID)
		return s.staysOff(ctx)
	}
	c, err := n.look(ctx, nodeID, s)
	if err != nil {
		return err
	}
	// Nodes may be cut concurrently: each is counted before the next is checked.
	v, err := n.count.admit(ctx, nodeID, c)
	if err != nil {
		return err
	}
	if err := v.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	n.facts = append(n.facts, v.Facts()...)
	n.mu.Unlock()
	return act(s, ctx)
}

// look gathers all facts about a node except which others are off.
func (n *Nodes) look(ctx context.Context, nodeID string, s *Switch) (PowerCut, error) {
	node := n.config.Nodes[slices.IndexFunc(n.config.Nodes, func(c target.NodeConfig) bool { return c.ID == nodeID })]
	c := PowerCut{Node: nodeName(node), Allowed: n.config.Allow.NodePower, Declared: declared(node)}
	var err error
	if c.BMC, err = s.Identity(ctx); err != nil {
		return c, err
	}
	survey, err := n.surveyor.Survey(ctx, nodeID)
	if err != nil {
		return c, fmt.Errorf("survey node %q before its power is cut: %w", c.Node, err)
	}
	c.Machine, c.VMsListed, c.ForeignVMs = survey.Machine, survey.VMsListed, survey.ForeignVMs
	c.SameAs, c.Controller, c.Redundant, c.Health = survey.SameAs, survey.Controller, survey.Redundant, survey.Health
	if n.config.Health != nil {
		check, said := askHealth(ctx, *n.config.Health)
		c.Redundant, c.Health = redundancy(survey.Redundant, survey.Health, check, said)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.machines[nodeID] = survey.Machine
	c.Others = map[string]Identity{}
	for _, other := range n.config.Nodes {
		if other.ID == nodeID {
			continue
		}
		c.Others[nodeName(other)] = declared(other)
		if seen := n.machines[other.ID]; seen.Known() {
			c.Others[nodeName(other)] = seen
		}
	}
	return c, nil
}

// declared is the identity of a node in the target file.
func declared(n target.NodeConfig) Identity {
	id := Identity{UUID: n.UUID}
	if n.Serial != "" {
		id.Serials = []string{n.Serial}
	}
	return id
}
