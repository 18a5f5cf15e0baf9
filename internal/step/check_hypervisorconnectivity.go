package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkHypervisorConnectivity = verb.Kind{
	Name:    "check.HypervisorConnectivity",
	Summary: "Check that the hypervisor of a node answers.",
	Doc:     "The node is given by its index. The target's management software reports whether it has a connection to the node.",
	Example: exampleIdle + `setup:
  - check.HypervisorConnectivity:
      node_index: 0
` + exampleWait,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return &nodeCheck{remark: "The hypervisor of %s answers"} },
}
