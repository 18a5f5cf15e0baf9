package fiolog

import (
	"sync"
	"time"
	"unsafe"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// operation has the fields of an operation that logs need. Times are nanoseconds.
type operation struct {
	at        int64  // completion, on the axis of the load
	latency   uint64 // from the intended start
	service   uint64 // from submission
	submit    uint64 // until the submitting call returned; 0: not measured
	offset    int64
	size      uint32
	direction uint8
	priority  thread.Priority
}

const operationBytes = int(unsafe.Sizeof(operation{}))

// Recorder records the operations of one clone; it is an ioengine.Observer.
type Recorder struct {
	set   *Set
	clone *Clone

	// Guarded by mu: the data from the thread of the load.
	mu     sync.Mutex
	filled []*block
	now    *block // being filled; nil at first and while the thread waits
	from   int64  // the time from which operations count
	ended  int64  // when the load ended; 0: still running
	queued bool   // the writer has been notified
	waited time.Duration
	lost   uint64 // operations for which there was no free block
	dead   bool

	// Only for the writer.
	begun   bool
	busy    []*block
	clock   int64 // milliseconds at from, as lines have them
	line    lines
	each    eachLog
	average *averages
	buckets *histograms
}

var _ ioengine.Observer = (*Recorder)(nil)

// Begin implements ioengine.Observer.
func (r *Recorder) Begin(measureFrom int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = measureFrom
}

// Completed implements ioengine.Observer. As in fio, logs have only operations that succeeded and count.
func (r *Recorder) Completed(batch []ioengine.Completed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range batch {
		c := &batch[i]
		if !c.Measured || c.Sync || !c.OK() {
			continue
		}
		if r.now == nil || len(r.now.operations) == cap(r.now.operations) {
			if !r.nextBlock() {
				r.lost++
				continue
			}
		}
		o := operation{
			at: c.Completed, latency: uint64(max(0, c.Completed-c.Intended)), service: uint64(max(0, c.Completed-c.Submitted)),
			offset: c.Offset, size: uint32(c.Size), direction: uint8(c.Direction), priority: c.Priority,
		}
		if c.Returned != 0 {
			o.submit = uint64(max(1, c.Returned-c.Submitted))
		}
		r.now.operations = append(r.now.operations, o)
	}
}

// nextBlock hands over the full block and gets another. It releases the lock while it waits for one.
func (r *Recorder) nextBlock() bool {
	if r.dead {
		return false
	}
	r.handOver()
	r.mu.Unlock()
	b, waited := r.set.free.take()
	r.mu.Lock()
	r.waited += waited
	r.now, r.dead = b, b == nil
	return !r.dead
}

// handOver gives filled blocks to the writer.
func (r *Recorder) handOver() {
	if r.now != nil {
		r.filled = append(r.filled, r.now)
		r.now = nil
	}
	if !r.queued && len(r.filled) > 0 {
		r.queued = true
		r.set.work <- r // never blocks: there is room for every recorder
	}
}

// End ends the recording. at is when the last operation completed.
func (r *Recorder) End(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = max(at, r.from+1)
	r.handOver()
}

// Waited returns how long the load waited for the logs.
func (r *Recorder) Waited() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waited
}

// work converts filled blocks into lines; with all, also the block that is being filled. It runs on the writer's goroutine.
func (r *Recorder) work(all bool) {
	r.mu.Lock()
	if all && r.now != nil && len(r.now.operations) > 0 {
		r.filled = append(r.filled, r.now)
		r.now = nil
	}
	r.busy, r.filled = r.filled, r.busy[:0]
	if !all {
		r.queued = false // removed from the queue, which holds it at most once
	}
	from, ended := r.from, r.ended
	r.mu.Unlock()
	if !r.begun && (len(r.busy) > 0 || ended != 0) {
		r.begun = true
		r.start(from)
	}
	for i, b := range r.busy {
		for k := range b.operations {
			r.operation(&b.operations[k])
		}
		r.set.free.give(b)
		r.busy[i] = nil
	}
	if ended != 0 && r.average != nil {
		r.average.finish(r, ended)
		r.average = nil
	}
	if ended != 0 && r.buckets != nil {
		r.buckets.finish(r, ended)
		r.buckets = nil
	}
}

// start sets the time from which lines count.
func (r *Recorder) start(from int64) {
	if r.clone.Logs.Epoch {
		r.clock = (r.set.options.ZeroUnixNanos() + from + sinceUnix(r.clone.Logs.Clock)) / int64(time.Millisecond)
	}
	if r.average != nil {
		r.average.boundary = from + r.average.length
	}
	if r.buckets != nil {
		r.buckets.boundary = from + r.buckets.length
	}
}

// millis converts a time to that of lines.
func (r *Recorder) millis(at int64) int64 { return r.clock + (at-r.from)/int64(time.Millisecond) }

func (r *Recorder) operation(o *operation) {
	if r.buckets != nil {
		r.buckets.add(r, o)
	}
	if r.average != nil {
		r.average.add(r, o)
		return
	}
	r.each.write(r, o)
}

// newRecorder opens a clone's files.
func (s *Set) newRecorder(c *Clone) (*Recorder, error) {
	r := &Recorder{set: s, clone: c, line: lines{offset: c.Logs.Offset, priority: c.Logs.Priority, issued: c.Logs.Issued, both: c.Logs.Window == fiojob.WindowBoth}}
	for _, want := range []struct {
		into   **file
		log    *Log
		suffix string
		off    bool
	}{
		{&r.each.bandwidth, &c.Logs.Bandwidth, "bw", false},
		{&r.each.operations, &c.Logs.IOPS, "iops", false},
		{&r.each.latency, &c.Logs.Latency, "lat", c.NoLatency},
		{&r.each.service, &c.Logs.Latency, "clat", c.NoCompletion},
		{&r.each.submission, &c.Logs.Latency, "slat", c.NoSubmission},
		{&r.each.histogram, &c.Logs.Histogram, "clat_hist", false},
	} {
		if !want.log.On || want.off {
			continue
		}
		var err error
		if *want.into, err = s.open(nameOf(c, want.log, want.suffix), c.Logs.Shared); err != nil {
			return nil, err
		}
	}
	if c.Logs.AverageMillis > 0 {
		r.average = &averages{length: int64(c.Logs.AverageMillis) * int64(time.Millisecond), window: c.Logs.Window}
	}
	if c.Logs.Histogram.On && c.Logs.HistogramMillis > 0 {
		r.buckets = &histograms{length: int64(c.Logs.HistogramMillis) * int64(time.Millisecond), coarseness: uint(c.Logs.Coarseness)}
	}
	return r, nil
}
