package step

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/step/external"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var experimentalShell = verb.Kind{
	Name:    "experimental.Shell",
	Summary: "Run a command line on the machine where bragg runs.",
	Doc: "Runs programs of the scenario with your rights, so it needs --allow-shell: allow it only for scenarios that you " +
		"trust. The command runs in the run's folder; it is killed with all that it started when the run is stopped. On a " +
		"simulated target it is only recorded.",
	Example: example.Load + `
setup:
  - experimental.Shell:
      cmd: date
` + example.Wait,
	Needs: []target.Capability{target.CapHostShell},
	New:   func() verb.Step { return new(shell) },
}

type shell struct {
	Command  string `arg:"cmd,required" doc:"Command line for sh."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *shell) Effect(*verb.View) verb.Effect { return verb.Effect{Subject: s.Command} }

func (s *shell) Run(ctx context.Context, env *verb.Env) error {
	if env.Plan.Target.Simulated {
		env.Notes.Log(fmt.Sprintf("not run on a simulated target: %s", s.Command))
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", s.Command)
	cmd.Dir = env.Dir
	if err := external.Run(ctx, env, cmd); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s", s.Command)
	return nil
}
