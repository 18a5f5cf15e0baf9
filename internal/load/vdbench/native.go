package vdbench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/program"
)

func (g Generator) engine() ioengine.Generator { return ioengine.Generator{Backend: g.Backend} }

// native runs the runs of a file one after the other.
type native struct {
	workload  load.Workload
	config    *config
	generator Generator

	first  load.Instance // prepared
	closed bool
	totals []total
	jobs   strings.Builder // the job files of all runs

	mu      sync.Mutex
	current load.Instance
}

var (
	_ load.Describer = (*native)(nil)
	_ load.Timed     = (*native)(nil)
	_ load.Teller    = (*native)(nil)
	_ load.Splitter  = (*native)(nil)
)

// prepare opens the devices of the first run and checks the others.
func (n *native) prepare(ctx context.Context) (err error) {
	if n.workload.Prefill {
		w, err := n.config.prefill(&n.workload)
		if err != nil {
			return err
		}
		n.first, err = n.generator.engine().Prepare(ctx, w)
		return err
	}
	for i := range n.config.runs[1:] {
		if _, err := n.config.compile(n.generator, &n.workload, &n.config.runs[i+1]); err != nil {
			return err
		}
	}
	n.first, err = n.prepareRun(ctx, &n.config.runs[0], n.limit(0, 0))
	return err
}

// times is what is left for a run.
type times struct{ warmup, elapsed time.Duration }

// limit cuts the times of a run so that the load ends with its runtime.
func (n *native) limit(i int, spent time.Duration) times {
	t := times{n.config.runs[i].warmup, n.config.runs[i].elapsed}
	if n.workload.Runtime > 0 {
		left := n.workload.Runtime - spent
		t.warmup = min(t.warmup, max(0, left))
		t.elapsed = min(t.elapsed, max(0, left-t.warmup))
	}
	return t
}

// prepareRun opens the devices of a run.
func (n *native) prepareRun(ctx context.Context, r *run, t times) (load.Instance, error) {
	jobs, _, err := r.jobs(n.workload, t.elapsed, t.warmup)
	if err != nil {
		return nil, err
	}
	prepared, err := n.generator.engine().PrepareJobs(ctx, r.as(n.workload, t.elapsed, t.warmup), jobs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	return prepared, nil
}

// Engine describes the load; see load.Describer.
func (n *native) Engine() interval.Engine {
	e := interval.Engine{}
	if d, ok := n.first.(load.Describer); ok {
		e = d.Engine()
	}
	return n.config.engine(e)
}

// SetTime places the load on the run's axis; see load.Timed.
func (n *native) SetTime(zeroUnixNanos, startNanos int64) {
	n.workload.ZeroUnixNanos, n.workload.StartNanos = zeroUnixNanos, startNanos
	n.first.(load.Timed).SetTime(zeroUnixNanos, startNanos)
}

// Split ends the intervals at a time to come; see load.Splitter.
func (n *native) Split(ctx context.Context, at time.Time) error {
	n.mu.Lock()
	current := n.current
	n.mu.Unlock()
	if s, ok := current.(load.Splitter); ok {
		return s.Split(ctx, at)
	}
	return errors.New("split intervals: no run is active")
}

// Close releases what was prepared and did not run.
func (n *native) Close() error {
	if n.closed {
		return nil
	}
	n.closed = true
	return n.first.Close()
}

// Outputs are the totals of the runs and their translation.
func (n *native) Outputs() []load.Output {
	if n.workload.Prefill {
		return nil
	}
	bound := func(text string) string { return text[:min(len(text), load.OutputBytesMax)] }
	return []load.Output{{Name: "runs.txt", Text: bound(table(n.totals))}, {Name: "runs.fio", Text: bound(n.jobs.String())}}
}

// Run drives all runs; see load.Instance.
func (n *native) Run(ctx context.Context, sink load.Sink) error {
	if n.closed {
		return errors.New("run workload: it was closed or run before")
	}
	n.closed = true
	if n.workload.ZeroUnixNanos == 0 {
		n.workload.ZeroUnixNanos = time.Now().UnixNano()
		n.first.(load.Timed).SetTime(n.workload.ZeroUnixNanos, n.workload.StartNanos)
	}
	out := &relay{sink: sink, rated: n.config.paced(), period: periodOf(n.workload.IntervalLength), errorsMax: n.config.errorsMax}
	err := n.runAll(ctx, out)
	out.finish()
	return err
}

// periodOf is the regular length of intervals.
func periodOf(d time.Duration) int64 {
	if d <= 0 {
		d = time.Second
	}
	return int64(d)
}

// runAll runs the prefill, or every run until the load ends.
func (n *native) runAll(ctx context.Context, out *relay) error {
	if n.workload.Prefill {
		return n.drive(ctx, out, n.first, nil)
	}
	var began int64
	var most total // of the run that found the maximum of a curve
	for i := range n.config.runs {
		r, prepared := n.config.runs[i], n.first
		if i > 0 {
			if r.stop > 0 && n.totals[len(n.totals)-1].overdue(&r) {
				continue // a point of the curve was too slow
			}
			if err := n.rest(ctx, &r, out, began); err != nil || n.over(ctx, out, began) {
				return err
			}
			r.follow(&most)
			var err error
			if prepared, err = n.prepareRun(ctx, &r, n.limit(i, time.Duration(out.end-began))); err != nil {
				return err
			}
		}
		t := &total{run: &r}
		n.jobs.WriteString("# " + r.name + "\n" + r.text(r.elapsed, r.warmup))
		err := n.drive(ctx, out, prepared, t)
		n.totals = append(n.totals, *t)
		if i == 0 {
			began = out.first
		}
		if r.maximum {
			most = *t
		}
		if err != nil || n.over(ctx, out, began) {
			return err
		}
	}
	return nil
}

// over reports whether the load is cancelled or its runtime has passed.
func (n *native) over(ctx context.Context, out *relay, began int64) bool {
	const least = int64(time.Millisecond)
	return ctx.Err() != nil || n.workload.Runtime > 0 && out.end-began > int64(n.workload.Runtime)-least
}

// rest waits before a run, and delivers the intervals of that time.
func (n *native) rest(ctx context.Context, r *run, out *relay, began int64) error {
	if r.pause <= 0 {
		return nil
	}
	until := out.end + int64(r.pause)
	if n.workload.Runtime > 0 {
		until = min(until, began+int64(n.workload.Runtime))
	}
	axis := program.NewAxis(n.workload.ZeroUnixNanos)
	for ctx.Err() == nil {
		now := axis.Now()
		out.idle(min(now, until))
		if now >= until {
			return nil
		}
		timer := time.NewTimer(time.Duration(min(until-now, out.period)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}

// drive runs one prepared run.
func (n *native) drive(ctx context.Context, out *relay, prepared load.Instance, t *total) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.mu.Lock()
	n.current = prepared
	n.mu.Unlock()
	out.begin(t, cancel)
	err := prepared.Run(ctx, out)
	var limit *diag.Error
	if errors.As(context.Cause(ctx), &limit) {
		err = errors.Join(err, limit)
	}
	return err
}
