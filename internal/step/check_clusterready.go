package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkClusterReady = verb.Kind{
	Name:    "check.ClusterReady",
	Summary: "Check that the services of the cluster are up.",
	Doc:     "What that means is the target's to say; one that cannot tell does not offer the step.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.ClusterReady: {}
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return new(clusterReady) },
}

type clusterReady struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *clusterReady) Run(ctx context.Context, env *verb.Env) error {
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, s.Annotate, "The cluster is ready")
	return nil
}
