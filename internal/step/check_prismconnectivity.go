package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkPrismConnectivity = verb.Kind{
	Name:    "check.PrismConnectivity",
	Summary: "Check that Prism answers and accepts the login.",
	Doc:     "Only on Nutanix.",
	Example: exampleIdle + `setup:
  - check.PrismConnectivity: {}
` + exampleWait,
	Needs: []target.Capability{target.CapReady},
	New: func() verb.Step {
		return &clusterCheck{step: "check.PrismConnectivity", provider: "nutanix", remark: "Prism answers"}
	},
}
