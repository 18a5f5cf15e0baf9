// Package mlperf is a generator of the storage load of machine learning, as MLPerf Storage defines it. It is not DLIO: no framework and
// no accelerator is involved. Files are read into memory and discarded, and an accelerator is a timer.
//
//	prefill:     data set ──▶ files
//	training:    files ▶ readers ▶ batches ▶ accelerators, in step ──▶ accelerator utilization (AU), samples/s
//	checkpoint:  ranks ▶ files, synced ▶ read back ──▶ bandwidth
//
//	model.go, options.go, plan.go   parameters of the benchmark, what a workload asks for, its plan
//	room.go, mount.go, dataset.go   folders on the VM, their mounts, the files of a training
//	train.go, meter.go              epochs, and what they measure
//	search.go, checkpoint.go        the largest number of accelerators; checkpoints
//	together.go                     trainings on several VMs
//	run.go, record.go               a running load; its intervals and texts
//	simulate.go                     for VMs in memory
package mlperf

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Name is the name of the generator.
const Name = "mlperf_storage"

// Generator runs trainings and checkpoints. It needs no program.
type Generator struct{}

var _ load.Generator = Generator{}

// Plan returns what would be read and written.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return c.plan(&w)
}

// Prepare opens the folder and, for a training, checks its data set and drops it from memory. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	if w.Remote.Serves {
		s, err := newCoordinator(&w)
		if err != nil {
			return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
		}
		return s, nil
	}
	in := &instance{workload: w, config: c}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// engine describes the load before the machine is known.
func (c *config) engine(remote *load.Remote) interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: trainingOperations, Gauges: trainingGauges}
	if c.saves() {
		e.Operations, e.Gauges = checkpointOperations, checkpointGauges
	}
	switch {
	case inStep(remote) && c.saves():
		e.Gauges = slices.Concat(checkpointGauges, checkpointTogetherGauges)
	case inStep(remote):
		e.Gauges = slices.Concat(trainingGauges, togetherGauges)
	}
	if c.train.search {
		e.Gauges = append(slices.Clone(e.Gauges), searchGauge)
	}
	return e
}
