package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var ClusterReady = verb.Kind{
	Name:    "check.ClusterReady",
	Summary: "Check that the services of the cluster are up.",
	Doc:     "The target defines what ready means; a target that cannot tell does not offer the step.",
	Example: example.Idle + `setup:
  - check.ClusterReady: {}
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return &clusterCheck{remark: "The cluster is ready"} },
}
