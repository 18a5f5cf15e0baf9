package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var PrismHostInSameCluster = verb.Kind{
	Name:    "check.PrismHostInSameCluster",
	Summary: "Check that a node belongs to the Nutanix cluster.",
	Doc:     "Only on Nutanix. The node is given by its index.",
	Example: example.Idle + `setup:
  - check.PrismHostInSameCluster:
      node_index: 0
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New: func() verb.Step {
		return &nodeCheck{step: "check.PrismHostInSameCluster", provider: "nutanix", remark: "%s belongs to the cluster"}
	},
}
