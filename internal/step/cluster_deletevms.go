package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/verb"
)

var clusterDeleteCurieVMs = verb.Kind{
	Name:    "cluster.DeleteCurieVMs",
	Summary: "Delete all VMs of this run with their disks and snapshots.",
	Doc: "The name is X-Ray's. VMs of other runs, of X-Ray or of other users are not touched. At the end of every run this " +
		"happens anyway.",
	Example: example.Idle + `setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
run:
  - test.Wait:
      duration_secs: 1
teardown:
  - cluster.DeleteCurieVMs: {}
`,
	New: func() verb.Step { return new(deleteAll) },
}

type deleteAll struct {
	Annotate bool `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *deleteAll) Effect(*verb.View) verb.Effect { return verb.Effect{CleansUp: true} }

func (s *deleteAll) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "Deleting all VMs of the run")
	if err := env.VMs.Delete(ctx); err != nil {
		return err
	}
	env.Mark(s.Annotate, "Finished deleting all VMs of the run")
	return nil
}
