package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// task is one workload in an agent: its run and the intervals that the controller has not acknowledged yet.
type task struct {
	id       string
	workload load.Workload
	cancel   context.CancelFunc
	prepared chan struct{} // closed when Prepare has returned; prepareErr is valid then

	prepareErr error
	engine     string // valid once prepared
	countMax   int
	buffered   *atomic.Int64 // bytes in the buffers of all tasks

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced whenever something below changes
	lines     []line        // rising sequence without gaps
	next      int64         // sequence of the next interval
	discarded int64
	ended     bool
	end       endRecord
	fault     error // the generator broke its contract
}

// line is one interval, encoded when it arrived so that a long buffer is small and cannot change any more.
type line struct {
	sequence int64
	text     []byte
}

func newTask(id string, w load.Workload, bufferFor time.Duration, buffered *atomic.Int64) *task {
	length := w.IntervalLength
	if length <= 0 {
		length = time.Second
	}
	return &task{
		id: id, workload: w, prepared: make(chan struct{}), changed: make(chan struct{}), buffered: buffered,
		countMax: min(max(int(bufferFor/length), bufferCountMin), bufferCountMax),
	}
}

// run prepares and runs the workload; it returns when all is over.
func (t *task) run(ctx context.Context, g load.Generator, m *meter, note func(load.Workload, string, error)) {
	instance, err := g.Prepare(ctx, t.workload)
	t.prepareErr = err
	if d, ok := instance.(load.Describer); ok && err == nil {
		t.engine = d.Engine()
	}
	close(t.prepared)
	if err == nil {
		note(t.workload, strings.TrimSpace("running "+t.engine), nil)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err = instance.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
			if !t.accept(&iv, m) {
				cancel()
			}
		}))
		_ = instance.Close()
	}
	note(t.workload, "ended", t.finish(err))
}

// accept buffers one interval. It returns false when the generator must stop because it broke its contract.
func (t *task) accept(iv *interval.Interval, m *meter) bool {
	text, err := json.Marshal(record{Interval: iv})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && (iv.Sequence != t.next || t.ended) {
		err = fmt.Errorf("interval %d instead of %d", iv.Sequence, t.next)
	}
	if err != nil {
		if t.fault == nil {
			t.fault = &diag.Error{
				Code: codeMisbehaved, Exit: diag.ExitInternal, Err: err,
				Message: fmt.Sprintf("generator %q broke its contract", t.workload.Generator),
			}
		}
		return false
	}
	m.add(iv, t.workload.Devices)
	t.next++
	text = append(text, '\n')
	for len(t.lines) > 0 && (len(t.lines) >= t.countMax || t.buffered.Load()+int64(len(text)) > bufferBytesMax) {
		t.forgetFirst()
		t.discarded++
	}
	t.buffered.Add(int64(len(text)))
	t.lines = append(t.lines, line{iv.Sequence, text})
	t.signal()
	return true
}

// finish returns what went wrong, all told.
func (t *task) finish(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		err = t.fault
	}
	t.ended, t.end = true, endRecord{Next: t.next, Error: toWire(err)}
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
	t.buffered.Add(-int64(len(t.lines[0].text)))
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
	lost    *lostRange
	texts   [][]byte
	next    int64         // what to ask for after this batch
	end     *endRecord    // set once everything was handed out
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
		b.lost, b.next = &lostRange{From: n, Through: first - 1}, first
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

func (t *task) health() TaskHealth {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := TaskHealth{
		ID: t.id, Workload: t.workload.Name, Running: !t.ended, Produced: t.next, Buffered: len(t.lines),
		Discarded: t.discarded,
	}
	select {
	case <-t.prepared:
		h.Prepared, h.Engine = true, t.engine
	default:
	}
	return h
}
