package check

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var NodePowerManagementConnectivity = verb.Kind{
	Name:    "check.NodePowerManagementConnectivity",
	Summary: "Check that the BMC of a node answers.",
	Doc:     "The node is given by its index.",
	Example: example.Idle + `setup:
  - check.NodePowerManagementConnectivity:
      node_index: 0
` + example.Wait,
	Needs: []target.Capability{target.CapNodePower},
	New:   func() verb.Step { return new(nodePowerManagementConnectivity) },
}

type nodePowerManagementConnectivity struct {
	Node     int  `arg:"node_index,required" doc:"Index of the node."`
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *nodePowerManagementConnectivity) Check(v *verb.View, problems *verb.Problems) {
	verb.CheckNodeIndex("node_index", s.Node, v, problems)
	if count := len(v.Inventory.Nodes); s.Node < count && s.Node >= -count {
		if n := verb.NodeAt(s.Node, v.Inventory.Nodes); !n.HasBMC {
			problems.Hint("node_index", "lacks-capability", "add its BMC to the target file", fmt.Sprintf("node %d (%s) has no BMC", s.Node, n.Name))
		}
	}
}

func (s *nodePowerManagementConnectivity) Run(ctx context.Context, env *verb.Env) error {
	index := s.Node
	if index < 0 {
		index += len(env.Plan.Target.Nodes)
	}
	name := env.Plan.Target.Nodes[index].Name
	if _, err := env.Nodes.State(ctx, index); err != nil {
		return fmt.Errorf("check the BMC of node %q: %w", name, err)
	}
	env.Mark(s.Annotate, "The BMC of %s answers", name)
	return nil
}
