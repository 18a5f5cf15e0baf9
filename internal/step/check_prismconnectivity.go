package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkPrismConnectivity = verb.Kind{
	Name:    "check.PrismConnectivity",
	Summary: "Check that Prism answers and accepts the login.",
	Doc:     "Only on Nutanix.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.PrismConnectivity: {}
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return new(prismConnectivity) },
}

type prismConnectivity struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *prismConnectivity) Check(v *verb.View, problems *verb.Problems) {
	checkProvider(v, problems, "check.PrismConnectivity", "nutanix")
}

func (s *prismConnectivity) Run(ctx context.Context, env *verb.Env) error {
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, s.Annotate, "Prism answers")
	return nil
}
