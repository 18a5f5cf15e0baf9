package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkHypervisorConnectivity = verb.Kind{
	Name:    "check.HypervisorConnectivity",
	Summary: "Check that the hypervisor of a node answers.",
	Doc:     "The node is given by its index; the target asks its management software, which loses touch with a node whose hypervisor is gone.",
	Example: exampleIdle + `setup:
  - check.HypervisorConnectivity:
      node_index: 0
` + exampleWait,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return &nodeCheck{remark: "The hypervisor of %s answers"} },
}
