package chase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// instance is one prepared load.
type instance struct {
	workload load.Workload
	config   *config
	cpu      int
	caches   []memory.Cache
	cycles   []*cycle
	recent   [][]float64 // of each working set, the latest passes in ns per access
	said     *program.Transcript
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

const (
	// kept is of how many passes over one working set the fastest is its latency: others were disturbed.
	kept = 5
	// accessesLeast takes long enough for the clock, in the smallest cache too.
	accessesLeast = 1 << 20
	// accessesMost bounds a pass over a working set that is much larger than caches; the next one continues where it ended.
	accessesMost = 1 << 21
	// memoryTimes is how much larger than all last-level caches a working set is that shows memory.
	memoryTimes = 4
)

func (in *instance) prepare(ctx context.Context) error {
	cpus, err := memory.CPUs()
	if err != nil {
		return err
	}
	in.cpu = cpus[len(cpus)-1-in.workload.Ordinal%len(cpus)] // the first one handles more interrupts; VMs on one machine do not share one
	in.caches = memory.Caches([]int{in.cpu})
	if err := memory.Check(in.config.memory(), "give the VM more memory, or set smaller sizes"); err != nil {
		return err
	}
	built := make(chan error)
	go func() { built <- in.build(ctx) }()
	return <-built
}

// build makes the cycles on the CPU that will walk them, so that they are in its memory node. Its thread ends with it.
func (in *instance) build(ctx context.Context) error {
	if err := memory.Pin(in.cpu); err != nil {
		return err
	}
	for i, size := range in.config.sizes {
		c, err := newCycle(ctx, size, in.config.hugePages, load.Key(in.workload.Seed, uint64(i)))
		in.cycles = append(in.cycles, c)
		if err != nil {
			return err
		}
	}
	in.recent = make([][]float64, len(in.cycles))
	return nil
}

// Engine has doubts about the largest working set; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	note := func(code interval.NoteCode, format string, args ...any) {
		e.Notes = append(e.Notes, interval.EngineNote{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	last := in.config.sizes[len(in.config.sizes)-1]
	if cache := memory.LastLevel(in.caches); cache == 0 {
		note("caches-unknown", "the VM does not show its caches: the largest working set may fit into one")
	} else if last < memoryTimes*cache {
		note(interval.NoteInCaches, "the largest working set of %s is less than %d times the last-level cache of %s: it may not show memory",
			unit.FormatBytes(last), memoryTimes, unit.FormatBytes(cache))
	}
	if huge := in.huge(); in.config.hugePages && huge < last/2 {
		note("small-pages", "%s of the largest working set are in huge pages: misses of the TLB are part of its latency", unit.FormatBytes(huge))
	}
	return e
}

// huge is how much of the largest working set is in huge pages.
func (in *instance) huge() int64 {
	if last := in.cycles[len(in.cycles)-1]; last != nil {
		return last.region.HugeBytes()
	}
	return 0
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has a table of all working sets; see load.Teller.
func (in *instance) Outputs() []load.Output {
	return []load.Output{{Name: "memory-latency.txt", Text: in.said.String()}}
}

// Close gives the memory back.
func (in *instance) Close() error {
	var all error
	for _, c := range in.cycles {
		all = errors.Join(all, c.close())
	}
	return all
}

// passed is one pass over a working set.
type passed struct {
	program.Operation
	gauges interval.GaugeValues
}

// Run repeats rounds over all working sets until the runtime is over, or does as many as are kept; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = in.Close() }()
	w := &in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	out := &program.Recorder{Workload: *w, Sink: sink, Clients: 1, Gauges: in.latencies()}
	began := axis.Now()
	out.Begin(began)
	in.describe()
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.Runtime > 0 && !w.Prefill {
		timer := time.AfterFunc(w.Runtime, cancel)
		defer timer.Stop()
	}
	passes, failed := make(chan passed), make(chan error, 1)
	go func() {
		defer close(passes)
		failed <- in.rounds(over, axis, passes)
	}()
	tick := time.NewTicker(out.Period() / 2)
	defer tick.Stop()
	for open := true; open; {
		select {
		case p, ok := <-passes:
			if open = ok; ok {
				out.Add(p.Operation)
				out.Gauge(p.gauges, p.End)
			}
		case <-tick.C:
			out.Release(axis.Now())
		}
	}
	end := axis.Now()
	if w.Runtime > 0 && ctx.Err() == nil {
		end = max(began, out.First()) + int64(w.Runtime)
	}
	out.Finish(end)
	in.report()
	return <-failed
}

// rounds walks through one working set after the other. A prefill has nothing to do.
func (in *instance) rounds(ctx context.Context, axis program.Axis, out chan<- passed) error {
	if err := memory.Pin(in.cpu); err != nil {
		return err
	}
	for number := 0; ctx.Err() == nil && !in.workload.Prefill && (in.workload.Runtime > 0 || number < kept); number++ {
		for i, c := range in.cycles {
			accesses := min(max(accessesLeast, c.lines), accessesMost)
			if c.lines <= accessesMost {
				if _, err := c.pass(ctx, c.lines); err != nil { // fills the caches
					return ended(ctx, err)
				}
			}
			began := axis.Now()
			took, err := c.pass(ctx, accesses)
			if err != nil {
				return ended(ctx, err)
			}
			in.recent[i] = append(in.recent[i][max(0, len(in.recent[i])-kept+1):], float64(took)/float64(accesses))
			out <- passed{program.Operation{End: began + int64(took), Latency: int64(took)}, in.latencies()}
		}
	}
	return nil
}

// ended is nil where a walk was stopped, and an error where it went wrong.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, errLost) {
		return nil
	}
	return &diag.Error{Code: "results-differ", Exit: diag.ExitUndecided, Err: err, Message: "check the walk"}
}

// latencies are ns per access in each working set, the fastest of the latest passes. A working set that no pass reached is a gap.
func (in *instance) latencies() interval.GaugeValues {
	values := make(interval.GaugeValues, len(in.cycles))
	for i := range values {
		if values[i] = math.NaN(); len(in.recent[i]) > 0 {
			values[i] = slices.Min(in.recent[i])
		}
	}
	return values
}

// describe writes what the table is about.
func (in *instance) describe() {
	var levels []string
	for _, c := range in.caches {
		levels = append(levels, fmt.Sprintf("L%d %s", c.Level, unit.FormatBytes(c.Bytes)))
	}
	if levels == nil {
		levels = []string{"unknown"}
	}
	fmt.Fprintf(in.said, "Latency of memory: one dependent load at a time through a random cycle of lines of %d bytes, on CPU %d.\n", memory.Line, in.cpu)
	fmt.Fprintf(in.said, "caches for data: %s; of the largest working set in huge pages: %s\n", strings.Join(levels, ", "), unit.FormatBytes(in.huge()))
}

func (in *instance) report() {
	fmt.Fprintf(in.said, "\n%-12s %10s  %s\n", "working set", "ns/access", "fits into")
	for i, nanos := range in.latencies() {
		if !math.IsNaN(nanos) {
			fmt.Fprintf(in.said, "%-12s %10.2f  %s\n", unit.FormatBytes(in.config.sizes[i]), nanos, in.level(in.config.sizes[i]))
		}
	}
}

// level is the smallest cache that holds a working set.
func (in *instance) level(size int64) string {
	for _, c := range in.caches {
		if size <= c.Bytes {
			return fmt.Sprintf("L%d", c.Level)
		}
	}
	if len(in.caches) == 0 {
		return "unknown"
	}
	return "memory"
}
