package ioengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// instance is one prepared workload.
type instance struct {
	program *program.Program
	shared  shared
	names   []string // of devices
	phases  [][]*worker
	opened  []openFile
	lanes   int // of all phases
	guard   blockdev.Guard
	notes   []interval.EngineNote // what casts doubt on numbers, found on the devices
	closed  bool
	// abandoned: operations hang, so that nothing can be released.
	abandoned bool
}

type openFile struct {
	device string
	access backend.Access
	file   *backend.File
	flush  bool // when it is closed
	// flushAll: the file system that it lies on is flushed then.
	flushAll bool
}

const intervalLengthDefault = time.Second

// Run drives the load; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.closed {
		return errors.New("run workload: it was closed or run before")
	}
	w := &in.program.Workload
	in.shared.clock = measuring.NewClock(w.ZeroUnixNanos)
	in.shared.period = int64(w.IntervalLength)
	if in.shared.period <= 0 {
		in.shared.period = int64(intervalLengthDefault)
	}
	in.waitForStart(ctx)
	start := in.shared.clock.Now()
	stopped := context.AfterFunc(ctx, func() { in.shared.stop.Store(true) })
	defer stopped()
	workers := in.workers()
	for _, worker := range workers {
		worker.PeriodEnd = in.shared.splits.Next(start, in.shared.period)
	}
	t := measuring.NewCollector(in.timed(), in.names, &in.shared.clock, &in.shared.splits, measuring.Span{Start: start, Expected: in.expectedEnd(start)})
	in.shared.splits.Start(&in.shared.clock)
	sources := make([]measuring.Source, len(workers))
	for i, w := range workers {
		sources[i] = w
	}
	collected := make(chan struct{})
	finished := make(chan int64, 1)
	go func() {
		defer close(collected)
		t.Run(sources, sink, finished)
	}()
	err := in.runPhases()
	finished <- in.shared.clock.Now()
	<-collected
	return errors.Join(err, in.Close())
}

// Split ends the intervals at a time to come; see load.Splitter.
func (in *instance) Split(_ context.Context, at time.Time) error {
	nanos, ok := in.shared.splits.Add(at)
	if !ok {
		return errors.New("split intervals: too late, or not started")
	}
	for _, w := range in.workers() {
		w.lock()
		w.Tally.Split(nanos)
		w.mu.Unlock()
	}
	return nil
}

// workers are those of all phases.
func (in *instance) workers() []*worker { return slices.Concat(in.phases...) }

// waitForStart sleeps until the workload's moment on the run's time axis, or until ctx ends.
func (in *instance) waitForStart(ctx context.Context) {
	start := in.program.Workload.StartNanos
	if start == 0 {
		return
	}
	wait := start - in.shared.clock.Now()
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(wait))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		in.shared.stop.Store(true)
	}
}

// runPhases runs the workers between two stonewalls at the same time, phase after phase.
func (in *instance) runPhases() error {
	for phase, workers := range in.phases {
		if in.shared.stop.Load() {
			return nil
		}
		if phase > 0 {
			dropCaches(workers) // of the first phase Prepare did
		}
		if err := in.runPhase(workers); err != nil {
			return err
		}
	}
	return nil
}

func (in *instance) runPhase(workers []*worker) error {
	thread.AddPlaces(len(workers))
	defer thread.AddPlaces(-len(workers))
	start := in.shared.clock.Now()
	errs := make(chan error, len(workers))
	for _, w := range workers {
		w.begin(start)
		go func() { errs <- w.run() }()
	}
	look := time.NewTicker(drainMax / 16)
	defer look.Stop()
	var first error
	for ended := range workers {
		err := in.await(errs, look.C, workers)
		if errors.Is(err, errHang) {
			in.abandon(errs, len(workers)-ended)
			return err
		}
		if err != nil && first == nil {
			first = err
			in.shared.stop.Store(true)
		}
	}
	return first
}

var errHang = errors.New("operations do not complete")

// abandon leaves workers behind whose operations hang. Their memory and files stay, because the kernel still uses them,
// until the device answers after all; only then a goroutine that outlives Run releases everything.
func (in *instance) abandon(errs <-chan error, workers int) {
	in.shared.stop.Store(true)
	in.abandoned = true
	go func() {
		var late error
		for range workers {
			late = errors.Join(late, <-errs)
		}
		_ = errors.Join(late, in.release()) // not awaited; the hang was reported
	}()
}

// drainMax bounds how long operations in flight are waited for after the end of the load, so that a device that hangs
// cannot hold the end of a run.
var drainMax = 30 * time.Second

// await waits for the next worker to end, or gives up on all of them.
func (in *instance) await(errs <-chan error, look <-chan time.Time, workers []*worker) error {
	for {
		select {
		case err := <-errs:
			return err
		case <-look:
		}
		now := in.shared.clock.Now()
		for _, w := range workers {
			if w.overdue(now) < drainMax {
				continue
			}
			hanging := 0
			for _, w := range workers {
				hanging += w.hanging()
			}
			return &diag.Error{
				Code: "operations-hang", Exit: diag.ExitUndecided, Err: errHang,
				Message: fmt.Sprintf("end workload %q: %d operations hang %s after the end", in.program.Workload.Name, hanging, drainMax),
				Hint:    "the device does not answer; they stay with the kernel until it does",
			}
		}
	}
}

// expectedEnd returns when the load will end by its runtime, 0 where that is not known.
func (in *instance) expectedEnd(start int64) int64 {
	if len(in.phases) != 1 {
		return 0
	}
	var end int64
	for i := range in.program.Jobs {
		j := &in.program.Jobs[i]
		if j.Runtime == 0 || j.Fio.RampSize > 0 {
			return 0
		}
		end = max(end, start+int64(j.Fio.StartDelay+j.Fio.RampTime+j.Runtime))
	}
	return end
}

// Engine describes the engine of the load; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.program.Engine()
	for _, o := range in.opened {
		if o.file.Buffered != "" {
			e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteBuffered, Device: o.device, Text: o.file.Buffered})
		}
		if medium := blockdev.InMemory(o.file.Handle); medium != "" {
			e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteMemory, Device: o.device, Text: medium})
		}
	}
	e.Notes = append(e.Notes, in.notes...)
	return e
}

// Close releases the resources of Prepare.
func (in *instance) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	if in.abandoned {
		return nil
	}
	return in.release()
}

func (in *instance) release() error {
	var errs []error
	for _, w := range in.workers() {
		errs = append(errs, w.close())
	}
	errs = append(errs, in.flush()...)
	for _, o := range in.opened {
		errs = append(errs, o.file.Close())
	}
	return errors.Join(append(errs, in.guard.Close())...)
}

// flush flushes what jobs want to be flushed at their end, each file system once.
func (in *instance) flush() (errs []error) {
	flushed := map[uint64]bool{}
	for _, o := range in.opened {
		sync := func() int32 { return o.file.Sync(false) }
		switch system, ok := o.file.System(); {
		case o.flushAll && ok && flushed[system]:
			continue
		case o.flushAll && ok:
			flushed[system], sync = true, o.file.SyncSystem
		case !o.flush && !o.flushAll:
			continue
		}
		if errno := sync(); errno < 0 {
			errs = append(errs, fmt.Errorf("flush device %q: %w", o.device, syscall.Errno(-errno)))
		}
	}
	return errs
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.program.Workload.ZeroUnixNanos, in.program.Workload.StartNanos = zeroUnixNanos, startNanos
}

// timed is the workload with the length that its intervals have.
func (in *instance) timed() load.Workload {
	w := in.program.Workload
	w.IntervalLength = time.Duration(in.shared.period)
	return w
}
