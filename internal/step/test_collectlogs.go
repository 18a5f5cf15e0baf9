package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var testCollectCurieVMLogs = verb.Kind{
	Name:    "test.CollectCurieVMLogs",
	Summary: "Copy the logs of the agents on all VMs into the run's folder.",
	Doc:     "The name is X-Ray's. VMs that are powered off are left out.",
	Example: example.Deployed + `run:
  - test.Wait:
      duration_secs: 1
teardown:
  - test.CollectCurieVMLogs: {}
`,
	New: func() verb.Step { return new(collectLogs) },
}

type collectLogs struct {
	Annotate bool `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *collectLogs) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "Collecting logs")
	return env.Collect(ctx, env.VMs.Of(""))
}
