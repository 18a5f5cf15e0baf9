package step

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesShutdown = verb.Kind{
	Name:    "nodes.Shutdown",
	Summary: "Ask nodes to shut down in an orderly way.",
	Doc: "The requests go to all nodes at the same time. Unless wait_secs is 0 the step then waits until the nodes are off. " +
		"Loads on VMs that are still there end; that is annotated and does not fail the run. The nodes are powered on again at the " +
		"end of the run at the latest.",
	Example: example.Idle + `setup:
  - cluster.CleanUp: {}
run:
  - nodes.Shutdown:
      nodes: 0
  - nodes.PowerOn:
      nodes: 0
`,
	Needs:         nodeNeeds,
	SwitchesNodes: true,
	New:           func() verb.Step { return &powerOffNodes{doing: "Shutting down", graceful: true} },
}
