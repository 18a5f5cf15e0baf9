package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkClustersMatch = verb.Kind{
	Name:    "check.ClustersMatch",
	Summary: "Check that management and storage agree about the cluster.",
	Doc:     "The target asks its management software whether every node of the target file is there and up.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.ClustersMatch: {}
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return new(clustersMatch) },
}

type clustersMatch struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *clustersMatch) Run(ctx context.Context, env *verb.Env) error {
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, s.Annotate, "The clusters match")
	return nil
}
