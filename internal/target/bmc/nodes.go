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

// Survey is what only the provider can know about a node.
type Survey struct {
	Machine    Identity // what the node says of itself; not from its BMC
	SameAs     []string // other nodes, by name, that are the same machine
	VMsListed  bool
	ForeignVMs []string
	Controller Answer
	// Redundant is Yes also where the target misses nothing but the nodes that this run itself has switched off: how many
	// of those there may be is counted apart.
	Redundant Answer
	Health    string
}

// Surveyor collects the facts about a node that is about to be cut. It is called for each cut, because the facts change.
type Surveyor interface {
	Survey(ctx context.Context, nodeID string) (Survey, error)
}

// Nodes are the BMCs of a target. It is a target.NodePower for a provider to embed, and the only way from there to a
// power cut leads through CheckPowerCut.
type Nodes struct {
	config   target.Config
	surveyor Surveyor
	switches map[string]*Switch // by id of the node
	count    *count

	mu       sync.Mutex
	facts    []target.Fact
	machines map[string]Identity // what surveys found, by id of the node
}

var (
	_ target.NodePower   = (*Nodes)(nil)
	_ target.NodeLimiter = (*Nodes)(nil)
)

// OpenNodes prepares all BMCs of a target file. It connects to none.
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

func nodeName(n target.NodeConfig) string {
	if n.Name != "" {
		return n.Name
	}
	return n.ID
}

// LimitNodesOff says how many nodes the scenario declares to be off at once. Before it is called no node is cut.
func (n *Nodes) LimitNodesOff(count int) { n.count.limit(count) }

// Facts is what a report must say: of ways to BMCs that are not safe, of checks that the owner turned off, and of cuts
// that were made in spite of one.
func (n *Nodes) Facts() []target.Fact {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append(StaticFacts(n.config), n.facts...)
}

// StaticFacts is the part of Facts that a target file alone makes.
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

// PowerOnNode powers a node on. It needs no proof of whose BMC it is, only leave.
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

// PowerOffNode cuts the power of a node, when CheckPowerCut allows it.
func (n *Nodes) PowerOffNode(ctx context.Context, nodeID string) error {
	return n.down(ctx, nodeID, (*Switch).Off)
}

// ShutdownNode asks the operating system of a node to stop and waits until it is off. The same checks as for a cut apply,
// because the result is the same: the node is off.
func (n *Nodes) ShutdownNode(ctx context.Context, nodeID string) error {
	return n.down(ctx, nodeID, (*Switch).Soft)
}

// Foresee returns what keeps the power of a node from being cut now, but for what the target file overrides. It asks no BMC.
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
		// There is nothing to cut, and a node that is off can say nothing of itself.
		n.count.off(nodeID)
		return s.staysOff(ctx)
	}
	c, err := n.look(ctx, nodeID, s)
	if err != nil {
		return err
	}
	// Several nodes are cut at the same time: each takes its place in the count before the next is checked.
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

// look gathers what is known of a node, but for the others that are off.
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

// declared is what the target file says a node is.
func declared(n target.NodeConfig) Identity {
	id := Identity{UUID: n.UUID}
	if n.Serial != "" {
		id.Serials = []string{n.Serial}
	}
	return id
}
