package step

import (
	"context"
	"errors"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var metaRollingUpgrade = verb.Kind{
	Name:    "meta.RollingUpgrade",
	Summary: "Restart the nodes one after the other, as an upgrade does, with their VMs moved aside.",
	Doc: "For each node in turn: the VMs of all groups are migrated from it to the next node, the node is shut down and " +
		"powered on again, and the VMs are migrated back. The plan shows the single steps. node_count limits how many nodes " +
		"are restarted, from the first on; without it all are.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 60
      async: True
  - meta.RollingUpgrade:
      node_count: 1
  - workload.Stop:
      workload_name: Load
`,
	Needs:         []target.Capability{target.CapNodePower, target.CapMigrate},
	SwitchesNodes: true,
	New:           func() verb.Step { return new(rollingUpgrade) },
}

type rollingUpgrade struct {
	NodeCount *int `arg:"node_count" doc:"How many nodes are restarted; all without it."`
	Annotate  bool `arg:"annotate" default:"true" doc:"Mark shutdown and power on of each node on charts."`
}

func (s *rollingUpgrade) Check(v *verb.View, problems *verb.Problems) {
	count := len(v.Inventory.Nodes)
	if count < 2 {
		problems.Errorf("", "node-range", "a rolling upgrade needs at least two nodes, the target has %d", count)
	}
	if s.NodeCount != nil && (*s.NodeCount < 1 || *s.NodeCount > count) {
		problems.Errorf("node_count", "node-range", "node_count must be from 1 to %d, the number of nodes, not %d", count, *s.NodeCount)
	}
}

// Expand returns the whole sequence, so that plan, journal and report show every operation separately.
func (s *rollingUpgrade) Expand(v *verb.View) []scenario.Call {
	count := len(v.Inventory.Nodes)
	restarted := count
	if s.NodeCount != nil {
		restarted = *s.NodeCount
	}
	var calls []scenario.Call
	add := func(name string, args ...scenario.Argument) {
		calls = append(calls, scenario.Call{Name: name, Args: args})
	}
	arg := func(name string, value any) scenario.Argument { return scenario.Argument{Name: name, Value: value} }
	for node := range restarted {
		for _, group := range v.GroupNames() {
			if v.Deployed(group) {
				add("vm_group.MigrateGroup", arg("vm_group_name", group), arg("from_node", int64(node)),
					arg("to_node", int64((node+1)%count)))
			}
		}
		add("nodes.Shutdown", arg("nodes", int64(node)), arg("annotate", s.Annotate))
		add("nodes.PowerOn", arg("nodes", int64(node)), arg("annotate", s.Annotate))
		for _, group := range v.GroupNames() {
			if v.Deployed(group) {
				add("vm_group.ResetGroupPlacement", arg("vm_group_name", group))
			}
		}
	}
	return calls
}

// Run is never called, because the step is expanded.
func (s *rollingUpgrade) Run(context.Context, *verb.Env) error {
	return errors.New("run meta.RollingUpgrade: it was not expanded")
}
