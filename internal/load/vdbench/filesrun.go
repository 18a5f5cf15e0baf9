package vdbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/tree"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/wait"
)

// onFiles is a prepared load, or prefill, on file systems.
type onFiles struct {
	workload load.Workload
	config   *config
	room     *program.Room
	trees    []*tree.Tree
	used     bool

	kinds  map[tree.Operation]int
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	out    program.Recorder
	errors uint64
	run    int // number of the current one, 0 before the first
	now    *fileTotal
	totals []*fileTotal
	ends   []string // what is to say of the ends of runs
}

var (
	_ load.Describer = (*onFiles)(nil)
	_ load.Timed     = (*onFiles)(nil)
	_ load.Teller    = (*onFiles)(nil)
)

// markName is the file that a prefill leaves and a load removes: the trees are as they were made.
const markName = "made"

// prepareFiles opens the folder of the trees and finds out what exists.
func (g Generator) prepareFiles(ctx context.Context, c *config, w load.Workload) (load.Instance, error) {
	if g.Backend == "null" {
		return c.simulateFiles(w), nil
	}
	in := &onFiles{workload: w, config: c, kinds: map[tree.Operation]int{}}
	for i, name := range c.files.kinds() {
		in.kinds[tree.Operation(name)] = i
	}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

func (in *onFiles) prepare(ctx context.Context) (err error) {
	c := in.config
	if in.room, err = program.OpenRoom(&in.workload, program.RoomName{Name: Name, FileSystem: &c.fileSystem}, c.disk); err != nil {
		return err
	}
	if !in.workload.Prefill {
		if err := in.room.Ready(c.disk); err != nil {
			return err
		}
	}
	for i := range c.files.systems {
		s := &c.files.systems[i]
		in.trees = append(in.trees, &tree.Tree{Layout: s.layout, Root: in.room.Path(program.DiskFolder(c.disk), fmt.Sprintf("tree-%016x", load.KeyOf(0, s.anchor)))})
		if in.workload.Prefill {
			continue
		}
		if err := in.trees[i].Scan(ctx); err != nil {
			return err
		}
	}
	if in.workload.Prefill {
		return nil
	}
	return in.checkTrees()
}

// checkTrees refuses a load whose first run needs files that do not exist.
func (in *onFiles) checkTrees() error {
	r := &in.config.files.runs[0]
	if r.format.any() {
		return nil
	}
	for k := range r.works {
		w := &r.works[k]
		needs := w.Operation != tree.MakeDir && w.Operation != tree.Create && w.Operation != tree.RmDir
		if needs && in.trees[w.on].Whole() == 0 {
			return &diag.Error{Code: "no-data-set", Exit: diag.ExitData, Message: fmt.Sprintf("fwd %s of %s uses files that do not exist on %s", w.Name, r.name, in.config.disk),
				Hint: "add workload.PrefillRun before the load, or format=yes to the run"}
		}
	}
	return nil
}

// Engine describes the load; see load.Describer.
func (in *onFiles) Engine() interval.Engine {
	e := in.config.filesEngine()
	e.Backends = append(e.Backends, in.room.Storage()...)
	return e
}

// SetTime places the load on the run's axis; see load.Timed.
func (in *onFiles) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Close releases the folder.
func (in *onFiles) Close() error {
	in.used = true
	room := in.room
	in.room = nil
	return room.Close()
}

// Outputs are the totals of the runs.
func (in *onFiles) Outputs() []load.Output {
	if len(in.totals) == 0 {
		return nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%4s %-9s %12s %10s %12s %9s %9s  %s\n", "run", "operation", "operations/s", "MiB/s", "operations", "mean ms", "p99 ms", "without the first interval, or the warm-up")
	for _, t := range in.totals {
		t.print(&out)
	}
	for _, text := range in.ends {
		fmt.Fprintln(&out, text)
	}
	text := out.String()
	return []load.Output{{Name: "runs.txt", Text: text[:min(len(text), load.OutputBytesMax)]}}
}

// Run runs the load or the prefill; see load.Instance.
func (in *onFiles) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	w := in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	in.out = program.Recorder{Workload: w, Sink: sink, Rated: in.config.files.paced() && !w.Prefill, Gauges: interval.GaugeValues{0}}
	began := axis.Now()
	in.out.Begin(began)
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in.cancel = cancel
	if w.Runtime > 0 && !w.Prefill {
		stop := time.AfterFunc(w.Runtime-time.Duration(axis.Now()-began), func() { cancel(context.DeadlineExceeded) })
		defer stop.Stop()
	}
	done := make(chan error, 1)
	go func() { done <- in.work(limited, axis) }()
	err := in.follow(axis, done)
	end := axis.Now()
	if errors.Is(context.Cause(limited), context.DeadlineExceeded) && ctx.Err() == nil {
		err, end = nil, max(began, in.out.First())+int64(w.Runtime)
	}
	var limit *diag.Error
	if errors.As(context.Cause(limited), &limit) {
		err = errors.Join(err, limit)
	}
	in.out.Finish(end)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run workload %q: %w", w.Name, err)
	}
	return nil
}

// follow delivers intervals until the work has ended.
func (in *onFiles) follow(axis program.Axis, done <-chan error) error {
	period := int64(in.out.Period())
	for {
		now := axis.Now()
		next := (now/period + 1) * period
		timer := time.NewTimer(time.Duration(next - now))
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C:
			in.mu.Lock()
			in.out.Gauge(interval.GaugeValues{float64(in.run)}, next-1)
			in.out.Release(next)
			in.mu.Unlock()
		}
	}
}

// work is what this instance does.
func (in *onFiles) work(ctx context.Context, axis program.Axis) error {
	if in.workload.Prefill {
		if err := in.room.Ready(in.config.disk); err != nil {
			return err
		}
	}
	mark := in.room.Path(program.DiskFolder(in.config.disk), markName)
	made := false
	if text, err := os.ReadFile(mark); err == nil {
		made = string(text) == in.made()
	}
	if err := os.RemoveAll(mark); err != nil {
		return err
	}
	if in.workload.Prefill {
		return in.fill(ctx, axis)
	}
	for i := range in.config.files.runs {
		r := &in.config.files.runs[i]
		if i > 0 && r.pause > 0 {
			_ = wait.For(ctx, r.pause)
		}
		if r.format.any() && !made {
			for _, t := range r.trees {
				if err := in.trees[t].Format(ctx, r.format.mode, func(int64) {}); err != nil {
					return err
				}
			}
		}
		if made = made && r.format.only; r.format.only {
			continue
		}
		if err := in.drive(ctx, axis, i); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// made says what the trees were made of.
func (in *onFiles) made() string {
	var out strings.Builder
	for _, t := range in.trees {
		fmt.Fprintf(&out, "%s %+v\n", filepath.Base(t.Root), t.Layout)
	}
	return out.String()
}

// fill makes all trees.
func (in *onFiles) fill(ctx context.Context, axis program.Axis) error {
	before := axis.Now()
	for _, t := range in.trees {
		err := t.Format(ctx, tree.Mode{Clean: true, Folders: true, Files: true}, func(bytes int64) {
			in.mu.Lock()
			defer in.mu.Unlock()
			now := axis.Now()
			in.out.Add(program.Operation{Kind: in.kinds[tree.Write], End: now, Latency: now - before, Bytes: uint64(bytes)})
			before = now
		})
		if err != nil {
			return err
		}
	}
	return in.room.WriteFile(program.DiskFolder(in.config.disk)+"/"+markName, in.made())
}

// drive runs one run.
func (in *onFiles) drive(ctx context.Context, axis program.Axis, i int) error {
	r := &in.config.files.runs[i]
	start := axis.Now()
	warm := start + int64(r.warmup)
	t := &fileTotal{number: i + 1, name: r.name, from: warm}
	if r.warmup == 0 {
		t.from += int64(r.interval)
	}
	in.mu.Lock()
	in.run, in.now, in.totals = i+1, t, append(in.totals, t)
	in.out.Clients = 0
	for k := range r.works {
		in.out.Clients += r.works[k].Threads
	}
	in.mu.Unlock()
	d := &tree.Drive{Rate: r.rate, Linear: r.linear, Keep: r.keep, Until: warm + int64(r.elapsed), Now: axis.Now,
		Report: func(o tree.Record) bool { return in.report(o, warm) }}
	for k := range r.works {
		w := r.works[k].Work
		w.Tree = in.trees[r.works[k].on]
		d.Works = append(d.Works, &w)
	}
	result, err := d.Run(ctx)
	for _, text := range result.Idle {
		in.ends = append(in.ends, fmt.Sprintf("run %d: %s", i+1, text))
	}
	t.until = min(axis.Now(), d.Until)
	if n := result.Dropped; n > 0 {
		in.ends = append(in.ends, fmt.Sprintf("run %d: %d operations were due and never issued", i+1, n))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.out.Drop(t.until-1, n)
	}
	return err
}

// report counts an operation.
func (in *onFiles) report(o tree.Record, warm int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if o.End < warm {
		return true
	}
	kind := in.kinds[o.Operation]
	in.out.Add(program.Operation{Kind: kind, End: o.End, Latency: o.End - o.Due, Lag: o.Begin - o.Due, Bytes: uint64(o.Bytes), Failed: o.Failed})
	if o.Failed != "" {
		if in.errors++; in.errors >= in.config.errorsMax {
			in.cancel(&diag.Error{Code: "data-errors", Exit: diag.ExitUndecided, Message: fmt.Sprintf("%d operations failed (the last one with %s), and data_errors allows fewer than %d", in.errors, o.Failed, in.config.errorsMax)})
			return false
		}
		return true
	}
	in.now.add(o)
	return true
}

// fileTotal is what one run did without its first interval, or after its warm-up.
type fileTotal struct {
	number      int
	name        string
	from, until int64
	kinds       []fileCount
}

type fileCount struct {
	operation tree.Operation
	bytes     int64
	service   stat.Histogram
	nanos     float64
}

func (t *fileTotal) add(o tree.Record) {
	if o.End < t.from {
		return
	}
	i := slices.IndexFunc(t.kinds, func(c fileCount) bool { return c.operation == o.Operation })
	if i < 0 {
		i = len(t.kinds)
		t.kinds = append(t.kinds, fileCount{operation: o.Operation})
	}
	c := &t.kinds[i]
	c.bytes += o.Bytes
	c.service.Record(uint64(o.End - o.Begin))
	c.nanos += float64(o.End - o.Begin)
}

func (t *fileTotal) print(out *strings.Builder) {
	seconds := float64(t.until-t.from) / 1e9
	for i := range t.kinds {
		c := &t.kinds[i]
		n := float64(c.service.Count())
		fmt.Fprintf(out, "%4d %-9s %12.2f %10.2f %12.0f %9.3f %9.3f  %s\n", t.number, c.operation, n/seconds, float64(c.bytes)/seconds/(1<<20), n, c.nanos/n/1e6,
			float64(c.service.Quantile(0.99))/1e6, t.name)
	}
	if len(t.kinds) == 0 {
		fmt.Fprintf(out, "%4d %-9s %12s %10s %12s %9s %9s  %s\n", t.number, "-", "-", "-", "-", "-", "-", t.name)
	}
}

// simulateFiles is the load on a VM in memory.
func (c *config) simulateFiles(w load.Workload) load.Instance {
	s := &simulatedFiles{Simulated: program.Simulated{Workload: w, Of: c.filesEngine(), Latency: simulatedLatency, Bytes: 4096, Clients: 1}}
	if s.Workload.Runtime == 0 {
		s.Workload.Runtime = c.takes()
	}
	for k := range c.files.runs[0].works {
		s.Clients = max(s.Clients, c.files.runs[0].works[k].Threads)
	}
	if c.files.paced() {
		s.Rate = max(1, c.files.runs[0].rate)
	}
	return s
}

// simulatedFiles adds the gauge.
type simulatedFiles struct{ program.Simulated }

// Engine says that it is simulated; see load.Describer.
func (s *simulatedFiles) Engine() interval.Engine {
	e := s.Simulated.Engine()
	e.Gauges = s.Of.Gauges
	return e
}

// Run lets time pass; see load.Instance.
func (s *simulatedFiles) Run(ctx context.Context, sink load.Sink) error {
	return s.Simulated.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		iv.Gauges = interval.GaugeValues{1}
		sink.Interval(iv)
	}))
}
