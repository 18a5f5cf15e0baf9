package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/verb"
)

var workloadWait = verb.Kind{
	Name:    "workload.Wait",
	Summary: "Wait for the end of a workload that was started with async.",
	Doc: "The wait ends with the load, and no later than timeout_secs, 300 unless given, after the runtime and stagger_secs given to " +
		"workload.Start. VMs that this run itself powered off are not waited for.",
	Example: exampleDeployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 5
      async: True
  - workload.Wait:
      workload_name: Load
`,
	Needs: agentNeeds,
	Waits: true,
	New:   func() verb.Step { return new(waitWorkload) },
}

type waitWorkload struct {
	Workload string         `arg:"workload_name,required" of:"workload" doc:"Workload to wait for."`
	Timeout  *time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" doc:"How long it may take beyond its runtime; 300 without it."`
	Annotate bool           `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *waitWorkload) Check(v *verb.View, problems *verb.Problems) {
	checkStarted(s.Workload, false, v, problems)
	checkNotNegative(problems, "timeout_secs", s.Timeout)
}

func (s *waitWorkload) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Workload, Awaits: s.Workload}
}

func (s *waitWorkload) Estimate(v *verb.View) time.Duration { return v.LoadLeft(s.Workload, false) }

func (s *waitWorkload) Run(ctx context.Context, env *verb.Env) error {
	timeout := timeoutDefault
	if s.Timeout != nil {
		timeout = *s.Timeout
	}
	if err := env.Loads.Wait(ctx, s.Workload, false, timeout); err != nil {
		return err
	}
	annotate(env, s.Annotate, "%s: finished workload", s.Workload)
	return nil
}
