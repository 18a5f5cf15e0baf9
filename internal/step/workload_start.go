package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadStart = verb.Kind{
	Name:    "workload.Start",
	Summary: "Start a workload on all VMs of its group and, unless async is set, wait for its end.",
	Doc: "Every VM prepares first, however long that takes on each; then all start at one agreed moment. An event of the run tells how far " +
		"apart they really began.\n\n" +
		"runtime_secs counts on each VM from its own start; without it the workload runs until it is complete. " +
		"stagger_secs spreads the starts: with n VMs there are n−1 gaps of whole seconds, rounded down. The step returns when the last VM " +
		"was started, with async too. With fewer than two VMs, or where a gap would be shorter than a second, all start at once and the " +
		"step does not wait.\n\n" +
		"Without async the step waits until runtime and stagger are over and then for timeout_secs more, 300 unless given; " +
		"for a workload without a runtime timeout_secs is all it may take. With async there is nothing to time out, so " +
		"timeout_secs is refused; workload.Wait or workload.Stop come later.\n\n" +
		"A VM that this run itself powered off meanwhile is annotated and no failure. A VM that is lost for another reason, " +
		"or where the workload fails, makes the step fail once the others have ended.\n\n" +
		"With restart the workload starts again, for the rest of runtime_secs, on a VM that was lost and comes back: restarted on another node by the " +
		"platform (HA), with its node, or powered on by a later step. The time until then is a gap in its series.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 5
      stagger_secs: 2
      annotate: True
`,
	Needs: agentNeeds,
	New:   func() verb.Step { return new(start) },
}

// timeoutDefault is how long a workload may take beyond its runtime, as in X-Ray.
const timeoutDefault = 300 * time.Second

type start struct {
	Workload string         `arg:"workload_name,required" of:"workload" doc:"Workload to start."`
	Runtime  *time.Duration `arg:"runtime_secs" unit:"s" scale:"runtime" doc:"How long it runs on each VM; without it, to completion."`
	Timeout  *time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" doc:"How long it may take beyond its runtime; 300 without it. Not with async."`
	Annotate bool           `arg:"annotate" default:"false" doc:"Mark start and end on charts."`
	Async    bool           `arg:"async" default:"false" doc:"Go on with the next step while the workload runs."`
	Stagger  *time.Duration `arg:"stagger_secs" unit:"s" scale:"gap" doc:"Span over which the starts of the VMs are spread."`
	Restart  bool           `arg:"restart" default:"false" doc:"Start it again on a VM that was lost and comes back. Needs runtime_secs; not with a server_group."`
	Seed     string         `arg:"seed" doc:"Text from which random offsets and content derive; equal texts give equal streams."`
}

func (s *start) spec() verb.LoadSpec {
	return verb.LoadSpec{Workload: s.Workload, Runtime: value(s.Runtime), Stagger: value(s.Stagger), Seed: s.Seed, Restart: s.Restart, Async: s.Async}
}

func (s *start) Check(v *verb.View, problems *verb.Problems) {
	checkWorkloadReady(s.Workload, v, problems)
	if s.Async && s.Timeout != nil {
		problems.Hint("timeout_secs", "timeout-with-async", "leave it out here and give it to workload.Wait",
			"timeout_secs does not go with async: the step does not wait")
	}
	if w, ok := v.Scenario.Workload(s.Workload); ok && s.Restart && w.ServerGroup != "" {
		problems.Errorf("restart", "restart-with-servers", "restart does not go with a server_group: its servers would have to start again too")
	}
	checkNotNegative(problems, "runtime_secs", s.Runtime)
	checkNotNegative(problems, "timeout_secs", s.Timeout)
	checkNotNegative(problems, "stagger_secs", s.Stagger)
	if s.Restart && s.Runtime == nil {
		problems.Hint("restart", "restart-without-runtime", "add runtime_secs", "restart needs a runtime: a workload without one starts over")
	}
	if t := v.Inventory; s.Restart && t.Provider != "" && !t.RestartsElsewhere && !t.RestartsWithNode {
		problems.Warnf("restart", "restarts-nothing", "target %q restarts no VM by itself: %q starts again only where a later step powers the VM on",
			t.Name, s.Workload)
	}
	if left := v.LoadLeft(s.Workload, false); left > 0 && s.Runtime != nil {
		problems.Warnf("workload_name", "still-running", "%q may still be running here, for about %s", s.Workload,
			unit.FormatDuration(left))
	}
}

func (s *start) Effect(*verb.View) verb.Effect {
	spec := s.spec()
	return verb.Effect{Subject: s.Workload, Load: &spec}
}

// Estimate: an async start still blocks until the last VM was started.
func (s *start) Estimate(v *verb.View) time.Duration {
	if s.Async {
		return v.StartsWithin(s.spec())
	}
	return max(v.StartsWithin(s.spec()), v.Lasts(s.spec()))
}

func (s *start) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "%s: starting workload", s.Workload)
	if err := env.Loads.Start(ctx, s.spec()); err != nil {
		return err
	}
	if s.Async {
		return nil
	}
	timeout := timeoutDefault
	if s.Timeout != nil {
		timeout = *s.Timeout
	}
	if err := env.Loads.Wait(ctx, s.Workload, false, timeout); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished workload", s.Workload)
	return nil
}
