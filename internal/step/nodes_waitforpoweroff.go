package step

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesWaitForPowerOff = verb.Kind{
	Name:    "nodes.WaitForPowerOff",
	Summary: "Wait until nodes are off.",
	Doc:     "For nodes that were switched off with wait_secs: 0.",
	Example: example.Idle + `setup:
  - cluster.CleanUp: {}
run:
  - nodes.PowerOff:
      nodes: 0
      wait_secs: 0
  - nodes.WaitForPowerOff:
      nodes: 0
`,
	Needs: nodeNeeds,
	Waits: true,
	New:   func() verb.Step { return &nodesWait{want: target.PowerOff} },
}
