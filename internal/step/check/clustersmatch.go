package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var ClustersMatch = verb.Kind{
	Name:    "check.ClustersMatch",
	Summary: "Check that management and storage agree about the cluster.",
	Doc:     "The target asks its management software whether every node of the target file is there and up.",
	Example: example.Idle + `setup:
  - check.ClustersMatch: {}
` + example.Wait,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return &clusterCheck{remark: "The clusters match"} },
}
