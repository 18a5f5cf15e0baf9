package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var clusterCleanUp = verb.Kind{
	Name:    "cluster.CleanUp",
	Summary: "Power on the nodes that this run powered off and delete this run's VMs.",
	Doc: "Before that, tables that prefills of this run made on endpoints are removed, unless their workloads keep them. " +
		"Nothing else is touched: VMs of other runs, of X-Ray or of other users stay, regardless of their names, and nodes that " +
		"were switched off by another party stay off. The log of the run lists all foreign objects on the target, with the reason. " +
		"At the beginning of setup the step therefore finds nothing to do. Its work at the end of teardown is also done at the end " +
		"of every run.",
	Example: example.Load + `
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
run:
  - test.Wait:
      duration_secs: 1
teardown:
  - cluster.CleanUp: {}
`,
	New: func() verb.Step { return new(cleanUp) },
}

type cleanUp struct {
	Annotate bool `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *cleanUp) Effect(*verb.View) verb.Effect { return verb.Effect{CleansUp: true} }

func (s *cleanUp) Run(ctx context.Context, env *verb.Env) error {
	for _, index := range env.Nodes.SwitchedOff() {
		env.Mark(s.Annotate, "Powering on %s", env.Plan.Target.Nodes[index].Name)
		if err := env.Nodes.On(ctx, index); err != nil {
			return err
		}
	}
	env.Loads.Remove(ctx)
	env.Mark(s.Annotate, "Deleting the run's VMs")
	if err := env.VMs.Delete(ctx); err != nil {
		return err
	}
	reportOthers(ctx, env)
	return nil
}
