package step

import (
	"context"
	"errors"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var metaParallel = verb.Kind{
	Name:    "meta.Parallel",
	Summary: "Run several lists of steps at once.",
	Doc: "Each branch runs its steps from top to bottom, by itself; the step ends when all branches have ended. The first step " +
		"that fails cancels the other branches, and the run fails with it. Branches are independent: what one " +
		"deploys or starts, another cannot use, and two cannot change the same group, load or node. What a branch started with " +
		"async continues after its end. Undo runs in the reverse order of execution. It cannot be nested, and is " +
		"not allowed in teardown.\n\n" +
		"The name is an extension of X-Ray's language.",
	Example: example.Deployed + `run:
  - meta.Parallel:
      branches:
        - - workload.Start:
              workload_name: Load
              runtime_secs: 20
        - - test.Wait:
              duration_secs: 5
              annotate: True
          - test.Wait:
              duration_secs: 10
              annotate: True
`,
	New: func() verb.Step { return new(parallel) },
}

type parallel struct {
	Branches scenario.Blocks `arg:"branches,required" doc:"At least two lists of steps."`
}

func (s *parallel) Check(_ *verb.View, problems *verb.Problems) {
	if len(s.Branches) < 2 {
		problems.Errorf("branches", "argument-range", "branches must be at least two lists of steps, not %d", len(s.Branches))
	}
}

func (s *parallel) Block() verb.Block { return verb.Block{Branches: s.Branches, Parallel: true} }

// Run is never called, because the engine runs the branches.
func (s *parallel) Run(context.Context, *verb.Env) error {
	return errors.New("run meta.Parallel: its branches were not run")
}
