package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkVCenterConnectivity = verb.Kind{
	Name:    "check.VCenterConnectivity",
	Summary: "Check that vCenter answers and accepts the login.",
	Doc:     "Only on vSphere.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.VCenterConnectivity: {}
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return new(vCenterConnectivity) },
}

type vCenterConnectivity struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *vCenterConnectivity) Check(v *verb.View, problems *verb.Problems) {
	checkProvider(v, problems, "check.VCenterConnectivity", "vsphere")
}

func (s *vCenterConnectivity) Run(ctx context.Context, env *verb.Env) error {
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, s.Annotate, "vCenter answers")
	return nil
}
