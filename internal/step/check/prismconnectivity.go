package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var PrismConnectivity = verb.Kind{
	Name:    "check.PrismConnectivity",
	Summary: "Check that Prism answers and accepts the login.",
	Doc:     "Only on Nutanix.",
	Example: example.Idle + `setup:
  - check.PrismConnectivity: {}
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New: func() verb.Step {
		return &clusterCheck{step: "check.PrismConnectivity", provider: "nutanix", remark: "Prism answers"}
	},
}
