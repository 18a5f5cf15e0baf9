package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadStop = verb.Kind{
	Name:    "workload.Stop",
	Summary: "End a workload that was started with async.",
	Doc: "The last interval of each VM is waited for, but no longer than 11 minutes (2 in a rehearsal) on one whose agent is silent: its " +
		"part is then given up, with what has arrived of it, and the step fails once the others have ended. A workload that had ended or failed on some VM before makes no " +
		"difference to the others; a failure is reported here.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 60
      async: True
  - test.Wait:
      duration_secs: 3
  - workload.Stop:
      workload_name: Load
`,
	Needs: agentNeeds,
	New:   func() verb.Step { return new(stop) },
}

type stop struct {
	Workload string `arg:"workload_name,required" of:"workload" doc:"Workload to end."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *stop) Check(v *verb.View, problems *verb.Problems) {
	checkStarted(s.Workload, false, v, problems)
}

func (s *stop) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Workload, Stops: s.Workload}
}

func (s *stop) Run(ctx context.Context, env *verb.Env) error {
	if err := env.Loads.Stop(ctx, s.Workload); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: stopped workload", s.Workload)
	return nil
}
