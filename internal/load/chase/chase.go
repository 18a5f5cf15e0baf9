// Package chase is a generator that measures the latency of memory: a chain of dependent loads, each of which says where the next one
// goes, through working sets of growing size. Where a working set no longer fits into a cache, the time of an access rises to that of
// the next level. It measures neither bandwidth nor parallel accesses.
//
//	sizes ──▶ one random cycle through all cache lines of each ──▶ rounds over all sizes ──▶ ns per access as series
//
//	options.go   what a workload asks for
//	cycle.go     the cycles, and the walk through them
//	run.go       a running load: passes to Intervals
//
// A pass over one working set is one operation. The walk cannot be elided: where it ends is checked.
package chase

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
const Name = "memory_latency"

// Generator walks through memory.
type Generator struct{}

var _ load.Generator = Generator{}

func (c *config) engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: []string{"pass"}}
	for _, size := range c.sizes {
		e.Gauges = append(e.Gauges, interval.Gauge{Name: unit.FormatBytes(size), Unit: "ns"})
	}
	return e
}

// Plan returns what would be measured.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	p := load.Plan{Engine: c.engine(), Computes: true, MemoryBytes: c.memory()}
	p.Jobs = []load.JobPlan{{Name: Name, Pattern: "pointer chase", QueueDepth: 1, Clones: 1, Pauses: true}}
	p.Notes = append(p.Notes, fmt.Sprintf("%d working sets from %s to %s, one dependent load at a time, stride %d bytes", len(c.sizes),
		unit.FormatBytes(c.sizes[0]), unit.FormatBytes(c.sizes[len(c.sizes)-1]), memory.Line))
	return p, nil
}

// Prepare builds the cycles.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	in := &instance{workload: w, config: c, said: program.NewTranscript(load.OutputBytesMax)}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}
