package libvirt

import (
	"context"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// powered is a Target whose nodes have BMCs.
type powered struct {
	*Target
	*bmc.HangingUp
}

func (t *Target) powered() powered {
	return powered{t, &bmc.HangingUp{Nodes: t.power.bmcs, Usable: func(ctx context.Context, _ string) error { return t.usable(ctx) }, Running: t.power.running, HangUp: t.hangUpAll}}
}

// hangUpAll ends the connections to agents of VMs that had been on a node, and that to the node: the next call connects again if the
// host is up.
func (t *Target) hangUpAll(vms []string, nodeID string) {
	for _, id := range vms {
		t.hangUp(id)
	}
	for _, n := range t.nodes {
		if n.ID == nodeID {
			n.Drop()
		}
	}
}

// nodePower is what is known here about the power of nodes, and about cutting it.
type nodePower struct {
	cluster *cluster
	bmcs    *bmc.Nodes // nil: no node has a BMC
}

// running lists the VMs on a node; none on one without power, which does not answer.
func (p *nodePower) running(ctx context.Context, nodeID string) []string {
	if p.off(ctx, nodeID) {
		return nil
	}
	var list []string
	if s, err := p.cluster.survey(ctx); err == nil {
		for id, one := range s.vms {
			if one.home().node.ID == nodeID {
				list = append(list, id)
			}
		}
	}
	return list
}

// off reports whether a node is known to be switched off.
func (p *nodePower) off(ctx context.Context, nodeID string) bool { return p.bmcs.Off(ctx, nodeID) }

// Survey collects the reasons against cutting the power of a node: see bmc.Surveyor.
func (p *nodePower) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	n, err := p.cluster.node(ctx, nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	var s bmc.Survey
	if s.Machine, err = identity(ctx, n.Host); err != nil {
		return s, err
	}
	domains, err := n.domains.All(ctx)
	if err != nil {
		return s, err
	}
	s.VMsListed = true
	for _, d := range domains {
		if d.Active() && !p.cluster.runs.has(d.Mark()) {
			s.ForeignVMs = append(s.ForeignVMs, d.Name)
		}
	}
	parts, err := n.secrets().Parts(ctx)
	if err != nil {
		return s, err
	}
	for _, h := range parts {
		s.ForeignVMs = append(s.ForeignVMs, fmt.Sprintf("agents of run %q of %s on the host itself", h.Run, h.User))
	}
	s.Controller = controllerOn(bmc.OwnUUID(), s.Machine, domains)
	s.Redundant, s.Health = p.health(ctx, nodeID)
	return s, nil
}

// health is what is known of redundancy without the node that is to be cut: every other host answers and has its pool, except those
// that this program switched off. Redundancy of the storage below the pools is not visible from here.
func (p *nodePower) health(ctx context.Context, nodeID string) (bmc.Answer, string) {
	nodes := p.cluster.nodes
	err := target.Each(ctx, len(nodes), func(i int) error {
		id := nodes[i].ID
		if id == nodeID {
			return nil
		}
		return p.bmcs.Answers(ctx, id, func(ctx context.Context) error { return p.cluster.DatastoreVisible(ctx, id, p.cluster.pool) })
	})
	if err != nil {
		return bmc.No, "hosts or their pools are missing: " + err.Error()
	}
	return bmc.Yes, "all other hosts that were not switched off answer and have their pool; redundancy of the storage itself is not visible from here"
}

// identity is that of the host's machine: by DMI where the host can read that, else by libvirt's UUID of the host.
func identity(ctx context.Context, h *virsh.Host) (bmc.Identity, error) {
	if text, err := h.Query(ctx, "sysinfo"); err == nil {
		if id := parseSysinfo(text); id.Known() {
			return id, nil
		}
	}
	facts, err := h.Facts(ctx)
	return bmc.Identity{UUID: facts.UUID}, err
}

func parseSysinfo(text []byte) bmc.Identity {
	type entries []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:",chardata"`
	}
	var info struct {
		System entries `xml:"system>entry"`
		Board  entries `xml:"baseBoard>entry"`
	}
	var id bmc.Identity
	if xml.Unmarshal(text, &info) != nil {
		return id
	}
	for _, e := range slices.Concat(info.System, info.Board) {
		switch value := strings.TrimSpace(e.Value); {
		case value == "":
		case e.Name == "uuid":
			id.UUID = value
		case e.Name == "serial":
			id.Serials = append(id.Serials, value)
		}
	}
	return id
}

// controllerOn reports whether this program runs on a host: on the machine itself, or in one of its VMs. machine is the
// UUID of the machine of this program.
func controllerOn(machine string, host bmc.Identity, domains []domain.Info) bmc.Answer {
	own := bmc.Identity{UUID: machine}
	if !own.Known() || !host.Known() {
		return bmc.Unknown
	}
	if match, _ := own.Compare(host); match != bmc.Differs {
		if match == bmc.Same {
			return bmc.Yes
		}
		return bmc.Unknown
	}
	for _, d := range domains {
		if match, _ := own.Compare(bmc.Identity{UUID: d.UUID}); match == bmc.Same {
			return bmc.Yes
		}
	}
	return bmc.No
}
