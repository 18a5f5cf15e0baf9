package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadPrefillWait = verb.Kind{
	Name:    "workload.PrefillWait",
	Summary: "Wait for the end of a prefill that was started with async.",
	Doc:     "A VM that could not be prefilled fails the step.",
	Example: example.Deployed + `  - workload.PrefillStart:
      workload_name: Load
      async: True
  - workload.PrefillWait:
      workload_name: Load
      timeout_secs: 3600
` + example.Wait,
	Needs: agentNeeds,
	Waits: true,
	New:   func() verb.Step { return new(prefillWait) },
}

type prefillWait struct {
	Workload string        `arg:"workload_name,required" of:"workload" doc:"Workload whose prefill to wait for."`
	Timeout  time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" default:"7200" doc:"How long it may take from here on."`
	Annotate bool          `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *prefillWait) Check(v *verb.View, problems *verb.Problems) {
	checkStarted(s.Workload, true, v, problems)
}

func (s *prefillWait) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Workload, AwaitsPrefill: s.Workload}
}

func (s *prefillWait) Estimate(v *verb.View) time.Duration { return v.LoadLeft(s.Workload, true) }

func (s *prefillWait) Run(ctx context.Context, env *verb.Env) error {
	if err := env.Loads.Wait(ctx, s.Workload, true, s.Timeout); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished prefill", s.Workload)
	return nil
}
