package redis

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
)

// Bounds.
const (
	lookEvery  = 100 * time.Millisecond
	roundGrace = 10 * time.Second // for the round in progress, after the end of a load, before SIGKILL
	outputMax  = 4 << 20          // bytes of one round's output
	growMax    = 8                // by which a round may be larger than the one before
	keptRounds = 2                // whose whole output the bundle has
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	server   *server
	series   *series             // of a load
	said     *program.Transcript // commands and what they printed
	before   uint64              // commands that the server executed before the load
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// prepare finds programs and data, and starts the server of a load.
func (in *instance) prepare(ctx context.Context) (err error) {
	if in.server, err = in.config.open(ctx, &in.workload, in.said); err != nil || in.workload.Prefill {
		return err
	}
	if err = in.server.up(ctx); err != nil {
		return err
	}
	if in.before, err = in.server.executed(ctx); err != nil {
		return err
	}
	in.series, err = in.server.openSeries(ctx)
	return err
}

// Engine describes the programs of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version = in.server.tools["redis-benchmark"].Version
	in.server.describe(&e, in.server.version())
	in.server.describeRelay(&e)
	e.Backends = append(e.Backends, in.server.Room.Storage()...)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the commands with their output, and the server's log; see load.Teller.
func (in *instance) Outputs() []load.Output { return in.server.Outputs("redis-benchmark.txt") }

// Close stops the server.
func (in *instance) Close() error {
	in.used = true
	if in.series != nil {
		in.series.Close()
		in.series = nil
	}
	return in.server.close()
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Clients: in.config.clients * in.config.pipeline}
	axis.WaitUntil(ctx, in.workload.StartNanos)
	if in.series != nil {
		out.Gauges = in.series.begin()
	}
	out.Begin(axis.Now())
	if ctx.Err() != nil {
		out.Finish(axis.Now())
		return nil
	}
	var err error
	if in.workload.Prefill {
		fill := in.server.fill
		if in.workload.Remove {
			fill = in.server.emptyEndpoint
		}
		err = out.Beside(axis, func() error { return fill(ctx) })
		out.Finish(axis.Now())
	} else {
		l := &loop{instance: in, axis: axis, out: out}
		err = l.drive(ctx)
	}
	return program.Outcome(ctx, in.workload.Name, err)
}

// loop is a running load.
type loop struct {
	*instance
	axis program.Axis
	out  *program.Recorder
	cpu  time.Duration // of rounds that ended
	n    int           // rounds so far
}

// drive runs rounds until the load ends, and holds their requests against the counters of the server.
func (l *loop) drive(ctx context.Context) error {
	began, until := l.axis.Now(), int64(0)
	if l.workload.Runtime > 0 {
		until = began + int64(l.workload.Runtime)
	}
	requests := make([]int, len(l.config.commands)) // of the next round, by command
	for kind := range requests {
		requests[kind] = l.config.least()
	}
	err := error(nil)
	whole := true // the last round printed its result
	for err == nil && whole && ctx.Err() == nil && (until == 0 || l.axis.Now() < until) {
		kind := l.n % len(requests)
		target := l.out.Period() / 2
		if until > 0 { // the last round ends about when the load does
			target = min(target, time.Duration(until-l.axis.Now()))
		}
		var took time.Duration
		took, whole, err = l.round(ctx, kind, requests[kind])
		requests[kind] = l.config.resize(requests[kind], took, target)
		l.n++
	}
	end := l.axis.Now()
	if err == nil && whole && ctx.Err() == nil {
		end = max(end, until)
	}
	l.out.Finish(end)
	if err != nil || !whole {
		return err
	}
	after, err := l.server.executed(context.WithoutCancel(ctx))
	if err == nil && l.config.place.Endpoint != "" && after-l.before > l.out.Done {
		fmt.Fprintf(l.said, "the server executed %d of these commands more than this load: other clients use it, such as other VMs of the load\n", after-l.before-l.out.Done)
	} else if err == nil && after-l.before != l.out.Done {
		err = program.TotalsDiffer("redis-benchmark reports %d requests, and the server executed %d", l.out.Done, after-l.before)
	}
	return err
}

// resize returns how many requests take about a time, if others took another one.
func (c *config) resize(requests int, took, target time.Duration) int {
	ratio := float64(growMax)
	if took > 0 {
		ratio = min(ratio, target.Seconds()/took.Seconds())
	}
	n := max(c.least(), int(float64(requests)*ratio))
	return n - n%c.pipeline // otherwise the last pipeline has more requests than are reported
}

// round runs redis-benchmark once. A load that has ended waits for it, as long as the server answers.
func (l *loop) round(ctx context.Context, kind, requests int) (took time.Duration, whole bool, err error) {
	text, last := &textio.Head{MaxBytes: outputMax}, program.NewTail(nil)
	command := l.server.complete(l.server.round(l.config.commands[kind], requests))
	command.Stdout, command.Stderr = text, io.MultiWriter(last, l.said)
	if l.n < keptRounds*len(l.config.commands) {
		fmt.Fprintf(l.said, "$ %s\n", command)
	}
	began := time.Now()
	p, err := command.Start()
	if err != nil {
		return 0, false, fmt.Errorf("start redis-benchmark: %w", err)
	}
	whole = l.follow(ctx, p)
	failed := p.Wait()
	took = time.Since(began)
	l.cpu += p.UsedCPU()
	l.out.Effort(l.cpu, interval.Effort{}, l.axis.Now())
	if !whole {
		return took, false, nil
	}
	if l.n < keptRounds*len(l.config.commands) {
		fmt.Fprint(l.said, text.String())
	}
	if failed != nil {
		return took, false, l.server.explain(fmt.Errorf("redis-benchmark: %w%s", failed, last.Quoted()))
	}
	done, latencies, err := parseRound(text.String())
	if err == nil && done != uint64(requests) {
		err = fmt.Errorf("redis-benchmark was started for %d requests and reports %d", requests, done)
	}
	if err != nil {
		return took, false, l.server.explain(fmt.Errorf("%w%s", err, last.Quoted()))
	}
	l.out.CountTimed(kind, l.axis.Now(), latencies)
	return took, true, nil
}

// follow waits for the end of a round, and kills it if it does not end in time. It reports whether the round ended by itself.
func (l *loop) follow(ctx context.Context, p *program.Process) bool {
	tick := time.NewTicker(min(lookEvery, l.out.Period()/4))
	defer tick.Stop()
	var late <-chan time.Time
	cancelled, ended := ctx.Done(), l.server.Ended()
	stop := &program.Stopper{Process: p, Signal: os.Kill, Grace: 0}
	defer stop.End()
	for {
		select {
		case <-p.Done():
			return late == nil || p.Wait() == nil
		case <-tick.C:
			if values, fresh := l.series.look(l.out.Period()); fresh {
				l.out.Gauge(values, l.axis.Now())
			}
			l.out.Effort(l.cpu+p.UsedCPU(), p.Effort(), l.axis.Now())
			l.out.Release(l.axis.Now() - int64(l.out.Period()))
		case <-cancelled:
			cancelled = nil
			timer := time.NewTimer(roundGrace)
			defer timer.Stop()
			late = timer.C
		case <-late:
			stop.Begin()
		case <-ended: // the client would wait
			ended = nil
			p.Kill()
		}
	}
}
