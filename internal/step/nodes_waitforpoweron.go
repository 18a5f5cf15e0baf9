package step

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesWaitForPowerOn = verb.Kind{
	Name:    "nodes.WaitForPowerOn",
	Summary: "Wait until nodes are on and the cluster is ready.",
	Doc:     "For nodes that were powered on with wait_secs: 0.",
	Example: example.Idle + `setup:
  - cluster.CleanUp: {}
run:
  - nodes.PowerOff:
      nodes: 0
  - nodes.PowerOn:
      nodes: 0
      wait_secs: 0
  - nodes.WaitForPowerOn:
      nodes: 0
`,
	Needs: nodeNeeds,
	Waits: true,
	New:   func() verb.Step { return &nodesWait{want: target.PowerOn} },
}
