package agent

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// task is one workload in an agent: its run and the intervals that the controller has not acknowledged yet.
type task struct {
	id       string
	workload load.Workload
	server   *Server
	zero     *int64 // uptime at the zero of the run's axis; nil: as the workload says
	cancel   context.CancelFunc
	prepared chan struct{}      // closed when Prepare has returned; prepareErr is valid then
	start    chan time.Duration // receives the uptime at which to start, 0 for at once
	started  sync.Once          // start was filled: only the first call counts
	stopped  atomic.Bool        // by stopAll

	prepareErr error
	engine     interval.Engine // valid once prepared
	ports      []int           // valid once prepared
	countMax   int

	mu        sync.Mutex
	splitter  load.Splitter // set while the load runs, if it can
	changed   chan struct{} // closed and replaced whenever something below changes
	lines     []line        // rising sequence without gaps
	next      int64         // sequence of the next interval
	discarded int64
	ended     bool
	end       wire.End
	fault     error // the generator broke its contract
}

// line is one interval, encoded when it arrived so that a long buffer is small and cannot change any more.
type line struct {
	sequence int64
	text     []byte
}

func newTask(id string, o order, s *Server) *task {
	length := o.work.IntervalLength
	if length <= 0 {
		length = time.Second
	}
	t := &task{
		id: id, workload: o.work, zero: o.zero, server: s, prepared: make(chan struct{}), changed: make(chan struct{}),
		start: make(chan time.Duration, 1), countMax: min(max(int(s.options.BufferFor/length), bufferCountMin), bufferCountMax),
	}
	t.workload.ZeroUnixNanos = t.zeroUnix()
	if !o.hold {
		t.startAt(0)
	}
	return t
}

// startAt lets a held workload go; only the first call counts.
func (t *task) startAt(uptime time.Duration) {
	t.started.Do(func() { t.start <- uptime })
}

// zeroUnix returns what the agent's wall clock shows, now, for the zero of the run's axis.
func (t *task) zeroUnix() int64 {
	if t.zero == nil {
		return t.workload.ZeroUnixNanos
	}
	return t.server.wall().UnixNano() - (t.server.uptime().Nanoseconds() - *t.zero)
}

// run prepares and runs the workload; it returns when all is over.
func (t *task) run(ctx context.Context, g load.Generator) {
	t.server.at("agent.prepare")
	instance, err := g.Prepare(ctx, t.workload)
	t.server.at("agent.prepared")
	t.prepareErr = err
	if d, ok := instance.(load.Describer); ok && err == nil {
		t.engine = d.Engine()
	}
	if s, ok := instance.(load.Server); ok && err == nil {
		t.ports = s.Ports()
	}
	close(t.prepared)
	if err == nil {
		err = t.runInstance(ctx, instance)
		t.server.at("agent.ended")
		_ = instance.Close()
		t.server.at("agent.closed")
		if teller, ok := instance.(load.Teller); ok {
			t.end.Outputs = slices.DeleteFunc(teller.Outputs(), func(o load.Output) bool { return !o.Valid() })
		}
	}
	t.server.noteTask(t.workload, "ended", t.finish(err))
	t.server.at("agent.finished")
}

// runInstance waits for the start and drives the load until its end. A workload that is stopped before has done nothing.
func (t *task) runInstance(ctx context.Context, instance load.Instance) error {
	var at time.Duration
	t.server.at("agent.held")
	select {
	case at = <-t.start:
	case <-ctx.Done():
		return nil
	}
	if !t.place(ctx, instance, at) {
		return nil
	}
	t.server.noteTask(t.workload, strings.TrimSpace("running "+t.engine.String()), nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.server.at("agent.run")
	splitter, _ := instance.(load.Splitter)
	t.setSplitter(splitter)
	defer t.setSplitter(nil)
	return instance.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		t.server.at("agent.interval")
		if !t.accept(&iv) {
			cancel()
		}
		t.server.at("agent.buffered")
	}))
}

func (t *task) setSplitter(s load.Splitter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.splitter = s
}

// split ends the interval at an uptime.
func (t *task) split(ctx context.Context, at time.Duration) error {
	t.mu.Lock()
	splitter := t.splitter
	t.mu.Unlock()
	if splitter == nil {
		return badRequest("split intervals of workload %q: it does not run, or its generator cannot", t.workload.Name)
	}
	return splitter.Split(ctx, time.Now().Add(at-t.server.uptime()))
}

// place tells the instance its zero and its start, or waits in its stead; false when ctx ended.
func (t *task) place(ctx context.Context, instance load.Instance, at time.Duration) bool {
	if timed, ok := instance.(load.Timed); ok {
		zero, start := t.zeroUnix(), t.workload.StartNanos
		switch {
		case at == 0:
		case zero == 0: // the axis begins when Run is called
			start = max(0, int64(at-t.server.uptime()))
		default:
			start = max(1, t.server.wall().UnixNano()-zero+int64(at-t.server.uptime()))
		}
		timed.SetTime(zero, start)
		return true
	}
	if at == 0 {
		return true
	}
	select {
	case <-time.After(at - t.server.uptime()):
		return true
	case <-ctx.Done():
		return false
	}
}

// accept buffers one interval. It returns false when the generator must stop because it broke its contract.
func (t *task) accept(iv *interval.Interval) bool {
	text := wire.AppendInterval(nil, iv)
	t.mu.Lock()
	defer t.mu.Unlock()
	if iv.Sequence != t.next || t.ended {
		if t.fault == nil {
			t.fault = &diag.Error{
				Code: codeMisbehaved, Exit: diag.ExitInternal, Err: fmt.Errorf("interval %d instead of %d", iv.Sequence, t.next),
				Message: fmt.Sprintf("generator %q broke its contract", t.workload.Generator),
			}
		}
		return false
	}
	if t.engine.DoesIO() {
		t.server.meter.add(iv, t.workload.Devices)
	}
	t.next++
	text = append(text, '\n')
	for len(t.lines) > 0 && (len(t.lines) >= t.countMax || t.server.buffered.Load()+int64(len(text)) > bufferBytesMax) {
		t.forgetFirst()
		t.discarded++
	}
	t.server.buffered.Add(int64(len(text)))
	t.lines = append(t.lines, line{iv.Sequence, text})
	t.signal()
	return true
}

// finish returns all errors.
func (t *task) finish(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		err = t.fault
	}
	t.ended, t.end.Next, t.end.Error = true, t.next, wire.ToError(err)
	t.signal()
	return err
}

// signal wakes all streams. The caller holds the lock.
func (t *task) signal() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// forgetFirst drops the oldest line. The caller holds the lock.
func (t *task) forgetFirst() {
	t.server.buffered.Add(-int64(len(t.lines[0].text)))
	t.lines[0] = line{}
	t.lines = t.lines[1:]
}

// acknowledge forgets intervals up to through.
func (t *task) acknowledge(through int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.lines) > 0 && t.lines[0].sequence <= through {
		t.forgetFirst()
	}
}

// forget drops everything that is buffered.
func (t *task) forget() { t.acknowledge(math.MaxInt64) }

// batch is what a stream has to write next.
type batch struct {
	lost    *wire.LostRange
	texts   [][]byte
	next    int64         // what to ask for after this batch
	end     *wire.End     // set once everything was handed out
	changed chan struct{} // closed when there is more
}

// from returns what is buffered from sequence n on, at most a bounded number of lines.
func (t *task) from(n int64) batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := batch{next: n, changed: t.changed}
	first := t.next
	if len(t.lines) > 0 {
		first = t.lines[0].sequence
	}
	if n < first {
		b.lost, b.next = &wire.LostRange{From: n, Through: first - 1}, first
	}
	const linesPerBatch = 64
	if offset := b.next - first; offset >= 0 && offset < int64(len(t.lines)) {
		for _, l := range t.lines[offset:min(offset+linesPerBatch, int64(len(t.lines)))] {
			b.texts = append(b.texts, l.text)
			b.next = l.sequence + 1
		}
	}
	if t.ended && b.next >= t.next {
		end := t.end
		b.end = &end
	}
	return b
}

func (t *task) health() wire.TaskHealth {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := wire.TaskHealth{
		ID: t.id, Workload: t.workload.Name, Running: !t.ended, Produced: t.next, Buffered: len(t.lines),
		Discarded: t.discarded,
	}
	select {
	case <-t.prepared:
		h.Prepared, h.Engine, h.Ports = true, t.engine, t.ports
	default:
	}
	return h
}
