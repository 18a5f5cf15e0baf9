package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadPrefillStart = verb.Kind{
	Name:    "workload.PrefillStart",
	Summary: "Begin to write everything that a workload will read, on all VMs at the same time.",
	Doc: "What is written is what workload.PrefillRun writes. Without async the step waits for the end, 7200 seconds at " +
		"most.",
	Example: example.Deployed + `  - workload.PrefillStart:
      workload_name: Load
      async: True
  - workload.PrefillWait:
      workload_name: Load
` + example.Wait,
	Needs: agentNeeds,
	New:   func() verb.Step { return new(prefillStart) },
}

type prefillStart struct {
	Workload string `arg:"workload_name,required" of:"workload" doc:"Workload whose files to write."`
	Async    bool   `arg:"async" default:"false" doc:"Go on with the next step meanwhile."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *prefillStart) spec() verb.LoadSpec {
	return verb.LoadSpec{Workload: s.Workload, Prefill: true, Async: s.Async}
}

func (s *prefillStart) Check(v *verb.View, problems *verb.Problems) {
	checkWorkloadReady(s.Workload, v, problems)
}

func (s *prefillStart) Effect(*verb.View) verb.Effect {
	spec := s.spec()
	return verb.Effect{Subject: s.Workload, Load: &spec}
}

func (s *prefillStart) Estimate(v *verb.View) time.Duration {
	if s.Async {
		return 0
	}
	return v.Transfer(s.Workload, true)
}

func (s *prefillStart) Run(ctx context.Context, env *verb.Env) error {
	if err := env.Loads.Start(ctx, s.spec()); err != nil || s.Async {
		return err
	}
	if err := env.Loads.Wait(ctx, s.Workload, true, prefillTimeoutDefault); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished prefill", s.Workload)
	return nil
}
