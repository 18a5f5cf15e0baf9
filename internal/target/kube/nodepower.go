package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// powered is a Target whose nodes have BMCs.
type powered struct {
	*Target
	*bmc.HangingUp
}

func (t *Target) powered() powered {
	return powered{t, &bmc.HangingUp{
		Nodes: t.power.bmcs, Running: t.power.running, Usable: func(ctx context.Context, _ string) error { return t.usable(ctx) },
		HangUp: func(vms []string, _ string) {
			for _, id := range vms {
				t.link.HangUp(id)
			}
		},
	}}
}

// nodePower is what is known here about the power of nodes, and about cutting it.
type nodePower struct {
	cluster *cluster
	bmcs    *bmc.Nodes // nil: no node has a BMC
}

// off reports whether a node is known to be switched off. The cluster itself notices that only after 40 seconds.
func (p *nodePower) off(ctx context.Context, nodeID string) bool { return p.bmcs.Off(ctx, nodeID) }

// dead reports whether no kubelet answers on a node: it is off, gone, or not ready.
func (p *nodePower) dead(ctx context.Context, nodeID string) bool {
	if nodeID == "" {
		return true // the pod was never placed
	}
	if p.off(ctx, nodeID) {
		return true
	}
	n, ok := p.cluster.hosts.Get(nodeID)
	if !ok {
		return false // not known
	}
	up, _ := ready(&n.Object)
	return !up
}

// running lists the VMs of any run on a node, by id.
func (p *nodePower) running(ctx context.Context, nodeID string) []string {
	all, err := p.cluster.runner.states(ctx, "")
	if err != nil {
		return nil
	}
	var list []string
	for id, s := range all {
		if s.node == nodeID {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// Survey collects the reasons against cutting the power of a node: see bmc.Surveyor. Pods of other namespaces may be invisible, so
// the list of what a cut hits is complete only where the user may list all pods.
func (p *nodePower) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	n, err := p.cluster.node(ctx, nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	var s bmc.Survey
	if n.seen == nil {
		return s, fmt.Errorf("node %q: the user may not read nodes, so its machine is not known", nodeID)
	}
	s.Machine = bmc.Identity{UUID: n.seen.Status.NodeInfo.SystemUUID}
	s.ForeignVMs, s.VMsListed, err = p.foreign(ctx, nodeID)
	if err != nil {
		return s, err
	}
	s.Controller = controllerOn(n)
	s.Redundant, s.Health = p.health(ctx, nodeID)
	return s, nil
}

// health is what is known of redundancy without the node that is to be cut: all others are ready, except those that this program
// switched off.
func (p *nodePower) health(ctx context.Context, nodeID string) (bmc.Answer, string) {
	all, err := p.cluster.nodes(ctx)
	if err != nil {
		return bmc.Unknown, err.Error()
	}
	var errs []error
	for _, n := range all {
		if id := n.config.ID; id != nodeID {
			errs = append(errs, p.bmcs.Answers(ctx, id, func(context.Context) error {
				if why := n.unready(); why != "" {
					return fmt.Errorf("node %q %s", id, why)
				}
				return nil
			}))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return bmc.No, err.Error()
	}
	return bmc.Yes, "all other nodes that were not switched off are ready; redundancy of the storage itself is not visible from here"
}

// controllerOn reports whether this program runs on a node: on its machine, or in a pod there.
func controllerOn(n node) bmc.Answer {
	if own, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil && n.seen.Status.NodeInfo.BootID != "" {
		if strings.TrimSpace(string(own)) == n.seen.Status.NodeInfo.BootID {
			return bmc.Yes
		}
		return bmc.No
	}
	return bmc.Unknown
}

// foreign lists the pods of others on a node that a cut would hit, without those of its own system.
func (p *nodePower) foreign(ctx context.Context, nodeID string) (names []string, listed bool, err error) {
	all, err := p.cluster.podsOn(ctx, nodeID)
	if err != nil {
		return nil, false, err
	}
	for _, o := range all {
		if o.Labels[object.LabelManager] == object.Manager && o.Namespace == p.cluster.client.Namespace || daemon(&o) {
			continue
		}
		names = append(names, "pod "+o.Namespace+"/"+o.Name)
	}
	return names, true, nil
}

// daemon reports whether a pod belongs to its node: it runs on every node, or the kubelet made it from a file.
func daemon(o *corev1.Pod) bool {
	for _, ref := range o.OwnerReferences {
		if ref.Kind == "DaemonSet" || ref.Kind == "Node" {
			return true
		}
	}
	return false
}
