// Package vioperf is a generator with the four tests of Vertica's program of that name: write, rewrite, read and skip read, with one
// thread per core and results in MB/s per core. It is not that program: it follows what is publicly documented of it, and chooses
// where nothing is.
//
//	a thread per core, with files of its own that grow ──▶ four tests, one after the other ──▶ MB/s per core
//
//	options.go        what a workload asks for
//	worker.go         one thread: its files and blocks
//	run.go, table.go  a running load; its table in the columns of the field
//
// Each buffer that is written, read, or read and written is one operation.
package vioperf

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Name is the name of the generator.
const Name = "vioperf"

// Generator runs the tests.
type Generator struct{}

var _ load.Generator = Generator{}

// The tests, in their order.
const (
	write = iota
	rewrite
	read
	skipRead
	testCount
)

var testNames = [testCount]string{"write", "rewrite", "read", "skip-read"}

// Gauges are the results of the tests that have ended.
const (
	gaugeSeeks = skipRead
	gaugeCRC   = testCount
	gaugeCount = testCount + 1
)

func engine() interval.Engine {
	return interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: testNames[:], Gauges: []interval.Gauge{
		{Name: "write per core", Unit: "MB/s"}, {Name: "rewrite per core", Unit: "MB/s"}, {Name: "read per core", Unit: "MB/s"},
		{Name: "skip reads", Unit: "seeks/s"}, {Name: "CRC time", Unit: "%"},
	}}
}

// Plan returns what would be written and read.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	p := load.Plan{Engine: engine(), BytesWritten: -1, BlockBytesMax: c.buffer, TakesMost: testCount * c.each(0), Timed: true, OwnData: true}
	c.fileSystem.Plan(&p)
	if w.Prefill {
		p.BytesWritten, p.TakesMost = 0, 0
		p.Notes = append(p.Notes, "nothing else is made before the load: it writes its files itself")
		return p, nil
	}
	p.Extents = []extent.Extent{{Device: c.disk, Length: c.data, Writes: true}}
	for i, name := range testNames {
		p.Jobs = append(p.Jobs, load.JobPlan{Name: name, Pattern: [...]string{"write", "read, write", "read", "read, with gaps"}[i],
			BlockSizes: unit.FormatBytes(c.buffer), BlockMin: c.buffer, BlockMax: c.buffer, QueueDepth: 1, DepthAsked: 1, Clones: max(1, c.threads),
			SizeBytes: c.data, Direct: c.direct, Reads: i != write, Writes: i == write || i == rewrite, Pauses: true})
	}
	threads := "a thread per core"
	if c.threads > 0 {
		threads = fmt.Sprintf("%d threads", c.threads)
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%s, each with growing files of its own, together at most %s on disk %s; CRC %s, %s I/O",
		threads, unit.FormatBytes(c.data), c.disk, onOff(c.crc), c.access()))
	if !c.direct {
		p.Notes = append(p.Notes, "buffered reads come from the page cache where the data is not much larger than memory")
	}
	return p, nil
}

// Prepare makes the files. They are empty until the load runs.
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

// Simulation replaces the tests on VMs that exist in memory only.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	w.Runtime = testCount * c.each(w.Runtime)
	return program.Simulated{Of: engine(), Clients: max(1, c.threads), Latency: simulatedLatency, Bytes: uint64(c.buffer)}, nil
}}
