package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadPrefillRun = verb.Kind{
	Name:    "workload.PrefillRun",
	Summary: "Write everything that a workload will read, a few VMs at a time, and wait until it is written.",
	Doc: "Each job's file, from its offset over its size, is written once in blocks of 1 MiB with random content; rates, " +
		"patterns and run times of the job file do not count. At most max_concurrent VMs write at the same time, and each of " +
		"them may take timeout_secs. A VM that cannot be prefilled fails the step.",
	Example: example.Deployed + `  - workload.PrefillRun:
      workload_name: Load
      max_concurrent: 2
` + example.Wait,
	Needs: agentNeeds,
	New:   func() verb.Step { return new(prefillRun) },
}

// prefillTimeoutDefault is how long the prefill of one VM may take, as in X-Ray.
const prefillTimeoutDefault = 7200 * time.Second

type prefillRun struct {
	Workload      string        `arg:"workload_name,required" of:"workload" doc:"Workload whose files to write."`
	MaxConcurrent int           `arg:"max_concurrent" default:"8" doc:"How many VMs write at a time."`
	Timeout       time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" default:"7200" doc:"How long one VM may take."`
	Annotate      bool          `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *prefillRun) spec() verb.LoadSpec {
	return verb.LoadSpec{Workload: s.Workload, Prefill: true, MaxConcurrent: s.MaxConcurrent, Timeout: s.Timeout}
}

func (s *prefillRun) Check(v *verb.View, problems *verb.Problems) {
	checkWorkloadReady(s.Workload, v, problems)
	if s.MaxConcurrent < 1 {
		problems.Errorf("max_concurrent", "argument-range", "max_concurrent must be at least 1, not %d", s.MaxConcurrent)
	}
	if s.Timeout <= 0 {
		problems.Errorf("timeout_secs", "argument-range", "timeout_secs must be more than 0")
	}
}

func (s *prefillRun) Effect(*verb.View) verb.Effect {
	spec := s.spec()
	return verb.Effect{Subject: s.Workload, Load: &spec}
}

func (s *prefillRun) Estimate(v *verb.View) time.Duration { return v.Transfer(s.Workload, true) }

func (s *prefillRun) Run(ctx context.Context, env *verb.Env) error {
	if err := env.Loads.Start(ctx, s.spec()); err != nil {
		return err
	}
	// Each VM has its own bound; this one is for all together.
	vms := len(env.VMs.Of(env.Step.Group))
	rounds := time.Duration(1 + vms/max(1, s.MaxConcurrent))
	if err := env.Loads.Wait(ctx, s.Workload, true, rounds*s.Timeout+time.Minute); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished prefill", s.Workload)
	return nil
}
