package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var VCenterConnectivity = verb.Kind{
	Name:    "check.VCenterConnectivity",
	Summary: "Check that vCenter answers and accepts the login.",
	Doc:     "Only on vSphere.",
	Example: example.Idle + `setup:
  - check.VCenterConnectivity: {}
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New: func() verb.Step {
		return &clusterCheck{step: "check.VCenterConnectivity", provider: "vsphere", remark: "vCenter answers"}
	},
}
