package nutanix

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// powered is a Target whose nodes have BMCs.
type powered struct {
	*Target
	*bmc.HangingUp
}

var _ target.PowerCutForeseer = powered{}

func (t *Target) powered() powered {
	return powered{t, &bmc.HangingUp{
		Elsewhere: true,
		Nodes:     t.cluster.bmcs, Usable: t.mayLosePower, Running: t.running,
		HangUp: func(vms []string, _ string) {
			for _, id := range vms {
				t.agents.link.HangUp(id)
			}
		},
	}}
}

// mayLosePower refuses what the target file does not allow: a node takes its CVM down.
func (t *Target) mayLosePower(ctx context.Context, nodeID string) error {
	if err := t.usable(ctx); err != nil {
		return err
	}
	if !t.config.Allow.NodePower {
		return target.PowerForbidden(nodeID)
	}
	if !t.config.Allow.CVMs {
		return forbidden("nutanix-cvm", fmt.Sprintf("cut the power of node %q: that also stops its CVM, which serves the storage of its VMs", nodeID), "cvms")
	}
	return nil
}

// Foresee also lists the CVM, where a cut would be refused because of it.
func (p powered) Foresee(ctx context.Context, nodeID string) (target.PowerCutForesight, error) {
	seen, err := p.Nodes.Foresee(ctx, nodeID)
	if err == nil && !p.config.Allow.CVMs {
		seen.Foreign = append(seen.Foreign, "its CVM, which serves the storage of its VMs (allow: {cvms: true})")
	}
	return seen, err
}

// running lists the VMs of Bragg on a node.
func (c *cluster) running(ctx context.Context, nodeID string) []string {
	s, err := c.survey(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for id, one := range s.vms {
		if n := byHost(s.nodes, one.HostID()); n != nil && n.id == nodeID {
			list = append(list, id)
		}
	}
	return list
}

// surveyor collects the reasons against cutting the power of a node: see bmc.Surveyor.
type surveyor struct{ cluster *cluster }

func (s *surveyor) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	n, err := s.cluster.node(ctx, nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	found := bmc.Survey{Controller: bmc.No}
	if n.host.Serial != "" {
		found.Machine.Serials = []string{n.host.Serial}
	}
	vms, err := s.cluster.ahv.VMs(ctx, "")
	if err != nil {
		return found, err
	}
	found.VMsListed = true
	own := bmc.OwnUUID()
	if own == "" {
		found.Controller = bmc.Unknown
	}
	for _, v := range vms {
		if v.HostID() != n.host.ExtID || v.Power == ahv.Off {
			continue
		}
		if own != "" && strings.EqualFold(v.ExtID, own) {
			found.Controller = bmc.Yes
		}
		if one := infoOf(v); one == nil || !s.cluster.runs.owns(one) {
			found.ForeignVMs = append(found.ForeignVMs, v.Name)
		}
	}
	found.Redundant, found.Health = s.health(ctx, nodeID)
	return found, nil
}

// health is whether the cluster has its redundancy: every other host runs, except those that this program switched off, and Prism
// finds that the cluster tolerates the failure of one more.
func (s *surveyor) health(ctx context.Context, nodeID string) (bmc.Answer, string) {
	nodes, err := s.cluster.fresh(ctx)
	if err != nil {
		return bmc.Unknown, err.Error()
	}
	for _, n := range nodes {
		if err := n.up(); err != nil && n.id != nodeID && !s.cluster.bmcs.HasCutPower(ctx, n.id) {
			return bmc.No, err.Error()
		}
	}
	said, err := s.cluster.resilient(ctx)
	if err != nil {
		return bmc.No, err.Error()
	}
	return bmc.Yes, said
}
