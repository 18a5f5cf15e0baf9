package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var HypervisorConnectivity = verb.Kind{
	Name:    "check.HypervisorConnectivity",
	Summary: "Check that the hypervisor of a node answers.",
	Doc:     "The node is given by its index. The target's management software reports whether it has a connection to the node.",
	Example: example.Idle + `setup:
  - check.HypervisorConnectivity:
      node_index: 0
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return &nodeCheck{remark: "The hypervisor of %s answers"} },
}
