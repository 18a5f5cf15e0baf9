package vioperf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
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
	cores    int
	room     *program.Room
	workers  []*worker
	buffered bool // direct I/O was wanted, and the file system has none
	cached   bool // reads may come from memory
	results  interval.GaugeValues
	said     *program.Transcript
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// folder is where the files are in the room.
func (in *instance) folder() string { return program.DiskFolder(in.config.disk) + "/data" }

func (in *instance) prepare(ctx context.Context) error {
	cpus, err := memory.CPUs()
	if err != nil {
		return err
	}
	in.cores = memory.Cores(cpus)
	in.results = interval.UnknownGauges(gaugeCount)
	c := in.config
	if in.room, err = program.OpenRoom(&in.workload, program.RoomName{Name: Name, FileSystem: &c.fileSystem, Said: in.said}, c.disk); err != nil || in.workload.Prefill {
		return err
	}
	if in.config.threads == 0 {
		in.config.threads = in.cores
	}
	in.config.data = max(in.config.data, in.config.least())
	if err := in.room.Ready(c.disk); err != nil {
		return err
	}
	if err := in.room.Clear(in.folder()); err != nil {
		return err
	}
	limit := max(blocksLeast, in.config.data/int64(2*in.config.threads)/in.config.buffer) * in.config.buffer
	for t := range in.config.threads {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := in.add(t, limit); err != nil {
			return err
		}
	}
	in.cached = (in.buffered || !in.config.direct) && in.config.data < memory.Available()
	return nil
}

// add makes the files of one thread.
func (in *instance) add(t int, limit int64) error {
	var files [2]*os.File
	for i := range files {
		f, direct, err := open(in.room.Path(in.folder(), fmt.Sprintf("thread-%d-%d", t, i)), in.config.direct)
		if err != nil {
			if i > 0 {
				_ = files[0].Close()
			}
			return err
		}
		files[i] = f
		in.buffered = in.buffered || in.config.direct && !direct
	}
	key := in.workload.Seed
	for _, n := range []int{in.workload.Number, in.workload.Ordinal, in.workload.Instance, t} {
		key = load.Key(key, uint64(n))
	}
	w, err := newWorker(in.config, files, limit, key)
	if err != nil {
		return errors.Join(err, files[0].Close(), files[1].Close())
	}
	in.workers = append(in.workers, w)
	return nil
}

// Engine says how files are accessed; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := engine()
	access := in.config.access()
	if in.buffered {
		access = "buffered"
		e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteBuffered, Device: in.config.disk, Text: "the file system has no direct I/O"})
	}
	e.Backends = append([]string{access, "CRC " + onOff(in.config.crc)}, in.room.Storage()...)
	if in.cached {
		e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteCached, Device: in.config.disk,
			Text: fmt.Sprintf("buffered writes and reads of %s, which fit into memory", unit.FormatBytes(in.config.data))})
	}
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the table; see load.Teller.
func (in *instance) Outputs() []load.Output {
	return []load.Output{{Name: "vioperf.txt", Text: in.said.String()}}
}

// Close removes the files.
func (in *instance) Close() error {
	var all error
	for _, w := range in.workers {
		all = errors.Join(all, w.close())
	}
	in.workers = nil
	if in.room != nil {
		all = errors.Join(all, os.RemoveAll(in.room.Path(in.folder())), in.room.Close())
		in.room = nil
	}
	return all
}

// Run does the four tests, each in a quarter of the runtime; see load.Instance. A prefill makes a file system at most: each load writes its
// files first.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = in.Close() }()
	w := &in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	out := &program.Recorder{Workload: *w, Sink: sink, Clients: in.config.threads, Gauges: in.results}
	began := axis.Now()
	out.Begin(began)
	if w.Prefill {
		err := out.Beside(axis, func() error { return in.room.Ready(in.config.disk) })
		out.Finish(axis.Now())
		return err
	}
	in.describe()
	duration := in.config.each(w.Runtime)
	var err error
	for kind := 0; kind < testCount && err == nil && ctx.Err() == nil; kind++ {
		t := newTest(in, kind, duration)
		if err = t.run(ctx, axis, out); err == nil && ctx.Err() == nil {
			in.results = slices.Clone(in.results)
			t.results(in.results)
			out.Gauge(in.results, axis.Now())
		}
	}
	end := axis.Now()
	if duration == w.Runtime/testCount && ctx.Err() == nil && err == nil {
		end = max(end, max(began, out.First())+int64(w.Runtime))
	}
	out.Finish(end)
	if errors.Is(err, errFull) {
		return &diag.Error{Code: "disk-full", Exit: diag.ExitUnavailable, Err: err, Message: fmt.Sprintf("write beside disk %s", in.config.disk),
			Hint: "set data, the size of all files, to what the file system has"}
	}
	return err
}

// run does one test: all threads work until its time is over.
func (t *test) run(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	over, cancel := context.WithTimeout(ctx, t.duration)
	defer cancel()
	operations := make(chan program.Operation, 64*len(t.in.workers))
	failed := make(chan error, len(t.in.workers))
	var all sync.WaitGroup
	for _, w := range t.in.workers {
		all.Go(func() {
			if err := w.run(over, t.kind, axis, operations); err != nil {
				cancel()
				failed <- err
			}
		})
	}
	go func() {
		all.Wait()
		close(operations)
	}()
	tick := time.NewTicker(out.Period() / 2)
	defer tick.Stop()
	for open := true; open; {
		select {
		case o, ok := <-operations:
			if open = ok; ok {
				t.add(o)
				out.Add(o)
			}
		case <-tick.C:
			out.Release(axis.Now() - int64(behind))
			t.look()
		}
	}
	if len(failed) > 0 {
		t.end()
		return <-failed
	}
	if t.kind == write || t.kind == rewrite {
		for _, w := range t.in.workers {
			if err := w.sync(); err != nil {
				return err
			}
		}
	}
	t.end()
	return nil
}

// behind is how long an interval waits for operations that ended in it and are still on their way.
const behind = 50 * time.Millisecond
