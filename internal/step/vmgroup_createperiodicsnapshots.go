package step

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupCreatePeriodicSnapshots = verb.Kind{
	Name:    "vm_group.CreatePeriodicSnapshots",
	Summary: "Take snapshots of all VMs of a group at a fixed interval.",
	Doc: "The first snapshot is taken at once, and the step ends with the last: n snapshots take n−1 intervals. With async " +
		"they are taken beside the following steps, until the run phase ends. Snapshots are removed with their VMs.",
	Example: example.Deployed + `run:
  - vm_group.CreatePeriodicSnapshots:
      vm_group_name: Workers
      num_snapshots: 2
      interval_minutes: 0.05
`,
	Needs: []target.Capability{target.CapSnapshot},
	New:   func() verb.Step { return new(createSnapshots) },
}

// snapshotsMax bounds the snapshots of one step; every snapshot may hold as much as the VM.
const snapshotsMax = 1000

type createSnapshots struct {
	Group    string        `arg:"vm_group_name,required" of:"group" doc:"Group whose VMs to snapshot."`
	Count    int           `arg:"num_snapshots,required" doc:"How many snapshots of each VM."`
	Interval time.Duration `arg:"interval_minutes,required" unit:"min" scale:"wait" doc:"Time from one snapshot to the next."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark each snapshot on charts."`
	Async    bool          `arg:"async" default:"false" doc:"Go on with the next step meanwhile."`
}

func (s *createSnapshots) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	if s.Count < 1 || s.Count > snapshotsMax {
		problems.Errorf("num_snapshots", "argument-range", "num_snapshots must be from 1 to %d, not %d", snapshotsMax, s.Count)
	}
	if s.Interval < 0 {
		problems.Errorf("interval_minutes", "argument-range", "interval_minutes must not be negative")
	}
}

func (s *createSnapshots) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Snapshot: s.Group, Snapshots: s.Count}
}

func (s *createSnapshots) Estimate(*verb.View) time.Duration {
	if s.Async {
		return 0
	}
	return time.Duration(s.Count-1) * s.Interval
}

func (s *createSnapshots) Run(ctx context.Context, env *verb.Env) error {
	if s.Async {
		return env.Work.Go("snapshots of "+s.Group, func(ctx context.Context) error { return s.take(ctx, env) })
	}
	return s.take(ctx, env)
}

func (s *createSnapshots) take(ctx context.Context, env *verb.Env) error {
	snapshotter, ok := env.Target.(target.Snapshotter)
	if !ok {
		return fmt.Errorf("snapshot group %q: the target cannot", s.Group)
	}
	ticker := time.NewTicker(max(s.Interval, time.Millisecond))
	defer ticker.Stop()
	for i := range s.Count {
		if i > 0 {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		vms, err := groupVMs(env, s.Group)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("bragg-%d-%03d", env.Step.ID, i+1)
		take := func(ctx context.Context) error { return snapshotter.SnapshotVMs(ctx, env.Tag, vms, name) }
		if err := env.Timed(ctx, interval.OperationSnapshot, vms, take); err != nil {
			return fmt.Errorf("take snapshot %d of group %q: %w", i+1, s.Group, err)
		}
		env.Mark(s.Annotate, "%s: snapshot %d of %d", s.Group, i+1, s.Count)
	}
	return nil
}
