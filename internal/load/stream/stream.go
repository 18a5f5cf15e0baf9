// Package stream is a generator that measures the bandwidth of memory as the STREAM benchmark of John D. McCalpin defines it: the same
// four kernels on the same numbers, the same counting of bytes, the best of several repetitions without the first, and results that
// are checked. It is not that program. Where its rules are not met, it calls itself STREAM-like and says why.
//
//	arrays, touched first by the threads that use them ──▶ rounds: start values, N × (copy, scale, add, triad), check ──▶ best rates
//
//	options.go   what a workload asks for
//	kernels.go   the kernels, and the values that they must leave
//	bench.go     threads and arrays; one repetition, one round
//	run.go       a running load: repetitions to Intervals
//
// Each pass of a kernel over the arrays is one operation. Nothing can be elided: every round ends with a check of all elements.
package stream

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Name is the name of the generator.
const Name = "stream"

// Generator runs the kernels.
type Generator struct{}

var _ load.Generator = Generator{}

// engine is the same on every machine.
func engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed}
	for _, k := range kernels {
		e.Operations = append(e.Operations, k.name)
		e.Gauges = append(e.Gauges, interval.Gauge{Name: k.name + " rate", Unit: "MB/s"})
	}
	return e
}

// Plan returns what would be measured. The size of the arrays depends on the caches of the VM, unless it is set.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	p := load.Plan{Engine: engine(), Computes: true, MemoryBytes: arrays * c.arrayBytes}
	p.Jobs = []load.JobPlan{{Name: Name, Pattern: "copy, scale, add, triad", QueueDepth: 1, Clones: 1, Pauses: true}}
	if c.arrayBytes == 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("three arrays, each of %d times the last-level caches of the VM", cacheTimes))
	} else {
		p.Notes = append(p.Notes, "three arrays of "+unit.FormatBytes(c.arrayBytes))
	}
	return p, nil
}

// Prepare allocates the arrays and touches them.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	b, err := newBench(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return &instance{workload: w, bench: b, said: program.NewTranscript(load.OutputBytesMax)}, nil
}

// place is the CPUs and caches that a load may use.
type place struct {
	cpus  []int
	cache int64 // last-level caches together, 0 if unknown
}

func newPlace() (p place, err error) {
	p.cpus, err = memory.CPUs()
	p.cache = memory.LastLevel(memory.Caches(p.cpus))
	return p, err
}
