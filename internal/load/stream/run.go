package stream

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// instance is one prepared load.
type instance struct {
	workload load.Workload
	bench    *bench
	said     *program.Transcript
	coarse   bool // a pass took too few ticks of the clock
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// ticksLeast is how many ticks of the clock each pass must take.
const ticksLeast = 20

// Engine says whether this may be called STREAM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := engine()
	e.Backends = []string{"STREAM"}
	if broken := in.broken(); len(broken) > 0 {
		e.Backends, e.Notes = []string{"STREAM-like"}, append(e.Notes, broken...)
	}
	return e
}

func (in *instance) broken() []interval.EngineNote {
	list := in.bench.broken()
	if in.coarse {
		list = append(list, interval.EngineNote{Code: notStream, Text: fmt.Sprintf("a pass takes fewer than %d ticks of the clock", ticksLeast)})
	}
	return list
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has a table for each round; see load.Teller.
func (in *instance) Outputs() []load.Output {
	return []load.Output{{Name: "stream.txt", Text: in.said.String()}}
}

// Close ends the threads.
func (in *instance) Close() error { return in.bench.close() }

// passed is one pass of a kernel, or the gauges after a repetition.
type passed struct {
	program.Operation
	gauges interval.GaugeValues
}

// Run repeats rounds until the runtime is over, or runs one; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = in.Close() }()
	w := &in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	out := &program.Recorder{Workload: *w, Sink: sink, Clients: 1}
	for range kernels {
		out.Gauges = append(out.Gauges, math.NaN())
	}
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
			if open = ok; ok && p.gauges != nil {
				out.Gauge(p.gauges, p.End)
			} else if ok {
				out.Add(p.Operation)
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
	return <-failed
}

// rounds runs whole rounds, and a part of one where the load ends. A prefill has nothing to do.
func (in *instance) rounds(ctx context.Context, axis program.Axis, out chan<- passed) error {
	best := slices.Repeat([]float64{math.NaN()}, len(kernels)) // of the last complete round
	for number := 1; ctx.Err() == nil && !in.workload.Prefill; number++ {
		in.bench.reset()
		r := newRound(in.bench)
		for r.repetitions < in.bench.config.repetitions && ctx.Err() == nil {
			r.repeat(axis, out)
			values := slices.Clone(best)
			if number == 1 {
				values = r.rates()
			}
			out <- passed{program.Operation{End: axis.Now()}, values}
		}
		if r.repetitions == 0 {
			break
		}
		if err := in.bench.check(r.repetitions); err != nil {
			return &diag.Error{Code: "results-differ", Exit: diag.ExitUndecided, Err: err,
				Message: fmt.Sprintf("check the results of round %d: the memory or the processor changed a number", number)}
		}
		if r.repetitions < in.bench.config.repetitions {
			break // a part of a round has no result
		}
		best = r.rates()
		in.coarse = in.coarse || slices.Min(r.least[:]) < ticksLeast*in.bench.tick
		in.report(number, r)
		out <- passed{program.Operation{End: axis.Now()}, slices.Clone(best)}
		if in.workload.Runtime == 0 {
			break
		}
	}
	return nil
}

// round is the times of the kernels in the repetitions of one round, the first one excluded.
type round struct {
	bench            *bench
	repetitions      int
	least, most, sum [len(kernels)]time.Duration
}

func newRound(b *bench) *round {
	r := &round{bench: b}
	for k := range r.least {
		r.least[k] = time.Duration(math.MaxInt64)
	}
	return r
}

// repeat runs all kernels once, one after the other.
func (r *round) repeat(axis program.Axis, out chan<- passed) {
	for k := range kernels {
		began, took := r.bench.pass(k)
		if r.repetitions > 0 {
			r.least[k], r.most[k], r.sum[k] = min(r.least[k], took), max(r.most[k], took), r.sum[k]+took
		}
		out <- passed{Operation: program.Operation{Kind: k, End: axis.Of(began) + int64(took), Latency: int64(took), Bytes: uint64(r.bench.bytes(k))}}
	}
	r.repetitions++
}

// rates are those of the fastest passes, in MB/s of 10⁶ bytes.
func (r *round) rates() interval.GaugeValues {
	list := make(interval.GaugeValues, len(kernels))
	for k := range list {
		if list[k] = math.NaN(); r.repetitions > 1 {
			list[k] = float64(r.bench.bytes(k)) / r.least[k].Seconds() / 1e6
		}
	}
	return list
}

// describe writes what the tables are about.
func (in *instance) describe() {
	b := in.bench
	fmt.Fprintf(in.said, "Bandwidth of memory by the definition of the STREAM benchmark, as Bragg implements it.\n")
	fmt.Fprintf(in.said, "arrays: 3 of %d elements of 8 bytes, %s each; last-level caches: %s\n", len(b.a), unit.FormatBytes(int64(len(b.a))*8), cacheText(b.place.cache))
	fmt.Fprintf(in.said, "threads: %d, on CPUs %v; huge pages: %s\n", b.config.threads, b.place.cpus[:b.config.threads],
		unit.FormatBytes(b.regions[0].HugeBytes()+b.regions[1].HugeBytes()+b.regions[2].HugeBytes()))
	fmt.Fprintf(in.said, "repetitions: %d, of which the first does not count; tick of the clock: %s\n", b.config.repetitions, b.tick)
}

func cacheText(bytes int64) string {
	if bytes == 0 {
		return "unknown"
	}
	return unit.FormatBytes(bytes)
}

func (in *instance) report(number int, r *round) {
	title := "STREAM"
	if broken := in.broken(); len(broken) > 0 {
		texts := make([]string, len(broken))
		for i, note := range broken {
			texts[i] = note.Text
		}
		title = "STREAM-like: " + strings.Join(texts, "; ")
	}
	fmt.Fprintf(in.said, "\nround %d, %s\n%-8s %14s %12s %12s %12s\n", number, title, "kernel", "best MB/s", "mean s", "least s", "most s")
	for k, rate := range r.rates() {
		mean := r.sum[k] / time.Duration(r.repetitions-1)
		fmt.Fprintf(in.said, "%-8s %14.1f %12.6f %12.6f %12.6f\n", kernels[k].name, rate, mean.Seconds(), r.least[k].Seconds(), r.most[k].Seconds())
	}
	fmt.Fprintf(in.said, "all elements have the expected values (relative error at most %g on average)\n", errorMax)
}
