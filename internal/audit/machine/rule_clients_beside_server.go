package machine

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/textio"
)

var ClientsBesideServer = rule.Rule{
	Code:    "clients-beside-server",
	Summary: "clients of a database share the CPUs of its server",
	Doc: "The clients of a database take CPU time as well, often as much as the server. On its VM (severity info), or on another VM of its node " +
		"(severity warning, because a scenario with a server_group asks for machines of their own), they take it from the server, and the result " +
		"is that of both together.",
	Example: `2 of 4 VMs with clients of OLTP are on the node of their server (host-1), and share its CPUs.`,
	Check:   checkClientsBesideServer,
}

const nodesNamed = 3

func checkClientsBesideServer(in *rule.Input) []finding.Finding {
	if onThisMachine(in) || in.Manifest.Target.Simulated {
		return nil // all VMs share it, which generator-on-target says
	}
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		if l.Plan.BesideServer {
			list = append(list, in.About(l.LoadSummary, finding.Info, "Give the workload a server_group, or an endpoint, if the server alone is to be measured.",
				"The clients of %s run on the VM of their server, and share its CPUs.", in.Name(l.LoadSummary)))
			continue
		}
		w, _ := in.KnownPlan().Workload(l.Workload)
		beside, all, nodes := sameNode(in.KnownPlan(), &w)
		if beside > 0 {
			list = append(list, in.About(l.LoadSummary, finding.Warning, "Place the two groups on different nodes.",
				"%s with clients of %s %s on the node of their server (%s), and share its CPUs.", fmt.Sprintf("%d of %d VMs", beside, all), in.Name(l.LoadSummary),
				map[bool]string{true: "is", false: "are"}[beside == 1], textio.Few(nodes, nodesNamed)))
		}
	}
	return list
}

// sameNode counts the clients of a workload that were placed on the node of their server, and names these nodes.
func sameNode(p *plan.Plan, w *plan.Workload) (beside, all int, nodes []string) {
	if w.Servers == nil || !w.Servers.Holds {
		return 0, 0, nil
	}
	clients, _ := p.Group(w.Group)
	servers, _ := p.Group(w.Servers.Group)
	for i, vm := range clients.VMs {
		for _, at := range w.Servers.Of(i, len(servers.VMs)) {
			if all++; servers.VMs[at].NodeID != vm.NodeID {
				continue
			}
			beside++
			name := vm.NodeID
			for _, n := range p.Target.Nodes {
				if n.ID == vm.NodeID {
					name = n.Name
				}
			}
			if !slices.Contains(nodes, name) {
				nodes = append(nodes, name)
			}
		}
	}
	return beside, all, nodes
}
