package step

import (
	"context"
	"errors"
	"time"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var metaRepeat = verb.Kind{
	Name:    "meta.Repeat",
	Summary: "Run a list of steps several times, or for a time.",
	Doc: "With count the steps run that often. With duration_secs iterations begin until that time is over; the " +
		"last one is completed, so the step may take longer, and the first always runs. With both, whichever comes " +
		"first ends it. The plan lists every possible iteration; events, plan and report show the iteration of each " +
		"step. A rehearsal shortens duration_secs as it does runtimes, and leaves count alone. It is not allowed in teardown.\n\n" +
		"With duration_secs alone, one of the steps must have a duration (runtime_secs, test.Wait). " +
		"The name is an extension of X-Ray's language; a loop in the template does the same where the number is known.",
	Example: example.Deployed + `run:
  - meta.Repeat:
      count: 3
      steps:
        - workload.Start:
            workload_name: Load
            runtime_secs: 5
        - test.Wait:
            duration_secs: 2
`,
	New: func() verb.Step { return new(repeat) },
}

type repeat struct {
	Steps    scenario.Blocks `arg:"steps,required" doc:"The steps, as in a phase."`
	Count    *int            `arg:"count" doc:"How many times they run, at most."`
	Duration *time.Duration  `arg:"duration_secs" unit:"s" scale:"runtime" doc:"How long another iteration may begin."`
}

func (s *repeat) Check(_ *verb.View, problems *verb.Problems) {
	if s.Count == nil && s.Duration == nil {
		problems.Hint("", "missing-argument", "count: 3, or duration_secs: 600", "meta.Repeat needs count or duration_secs")
	}
	if s.Count != nil && *s.Count < 1 {
		problems.Errorf("count", "argument-range", "count must be at least 1, not %d", *s.Count)
	}
	if s.Duration != nil && *s.Duration <= 0 {
		problems.Errorf("duration_secs", "argument-range", "duration_secs must be more than 0, not %v", s.Duration.Seconds())
	}
	if len(s.Steps) != 1 {
		problems.Errorf("steps", "argument-range", "meta.Repeat has no steps")
	}
}

func (s *repeat) Block() verb.Block {
	b := verb.Block{Branches: s.Steps}
	if s.Count != nil {
		b.Count = *s.Count
	}
	if s.Duration != nil {
		b.Duration = *s.Duration
	}
	return b
}

// Run is never called, because the plan has the steps.
func (s *repeat) Run(context.Context, *verb.Env) error {
	return errors.New("run meta.Repeat: its steps were not written out")
}
