package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkVCenterConnectivity = verb.Kind{
	Name:    "check.VCenterConnectivity",
	Summary: "Check that vCenter answers and accepts the login.",
	Doc:     "Only on vSphere.",
	Example: exampleIdle + `setup:
  - check.VCenterConnectivity: {}
` + exampleWait,
	Needs: []target.Capability{target.CapReady},
	New: func() verb.Step {
		return &clusterCheck{step: "check.VCenterConnectivity", provider: "vsphere", remark: "vCenter answers"}
	},
}
