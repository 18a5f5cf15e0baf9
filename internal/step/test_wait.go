package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var testWait = verb.Kind{
	Name:    "test.Wait",
	Summary: "Wait for a while.",
	Doc:     "Loads that were started with async go on. A stop of the run ends the wait.",
	Example: example.Load + `
setup:
  - cluster.CleanUp: {}
run:
  - test.Wait:
      duration_secs: 2
      annotate: True
`,
	Waits: true,
	New:   func() verb.Step { return new(wait) },
}

type wait struct {
	Duration time.Duration `arg:"duration_secs,required" unit:"s" scale:"wait" doc:"How long to wait."`
	Annotate bool          `arg:"annotate" default:"false" doc:"Mark beginning and end on charts."`
}

func (s *wait) Check(_ *verb.View, problems *verb.Problems) {
	if s.Duration <= 0 {
		problems.Errorf("duration_secs", "argument-range", "duration_secs must be more than 0, not %v", s.Duration.Seconds())
	}
}

func (s *wait) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: unit.FormatDuration(s.Duration)}
}

func (s *wait) Estimate(*verb.View) time.Duration { return s.Duration }

func (s *wait) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "Waiting for %s", unit.FormatDuration(s.Duration))
	timer := time.NewTimer(s.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	env.Mark(s.Annotate, "Waited for %s", unit.FormatDuration(s.Duration))
	return nil
}
