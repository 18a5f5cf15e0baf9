package ioengine

import (
	"runtime"
	"sync"
	"time"
)

// psyncBackend does operations with calls that block: pread and pwrite, preadv2 and pwritev2, or copies of memory. At depth 1 the worker's own thread does them. Above, a pool of
// threads does, one operation each at a time; handing over costs a channel operation each way, which the fall-back for
// machines without io_uring can afford.
type psyncBackend struct {
	slots    []slot
	kind     backendKind
	settings threadSettings // of all threads that perform
	perform  func(*slot) int32
	requests chan int32
	results  chan completion
	timer    *time.Timer
	threads  sync.WaitGroup
	depth    int
	clocks   []threadClock
	mu       sync.Mutex
}

// psyncThreadsMax bounds the threads of one clone: a deeper queue is served by as many.
const psyncThreadsMax = 64

func newPsyncBackend(slots []slot, kind backendKind) *psyncBackend {
	b := &psyncBackend{slots: slots, depth: len(slots), kind: kind, perform: perform}
	switch kind {
	case kindPvsync2:
		b.perform = performVector
	case kindMmap:
		b.perform = performMapped
	}
	return b
}

func (b *psyncBackend) start() error {
	if b.depth <= 1 {
		b.settle()
		return nil
	}
	b.requests = make(chan int32, b.depth)
	b.results = make(chan completion, b.depth)
	b.timer = time.NewTimer(time.Hour)
	for range min(b.depth, psyncThreadsMax) {
		b.threads.Go(b.serve)
	}
	return nil
}

// settle is called by every goroutine that performs.
func (b *psyncBackend) settle() {
	if b.kind == kindMmap {
		catchFaults()
	}
}

func (b *psyncBackend) serve() {
	runtime.LockOSThread()
	if b.settings == (threadSettings{}) {
		defer runtime.UnlockOSThread()
	}
	_ = b.settings.settle() // the worker's own thread has them already, so they are possible
	b.settle()
	own := newThreadClock()
	b.mu.Lock()
	b.clocks = append(b.clocks, own)
	at := len(b.clocks) - 1
	b.mu.Unlock()
	for i := range b.requests {
		b.results <- completion{slot: i, result: b.perform(&b.slots[i])}
	}
	b.mu.Lock()
	b.clocks[at].stop()
	b.mu.Unlock()
}

func (b *psyncBackend) exchange(batch []int32, done []completion, waitNanos int64) (int, error) {
	if b.depth <= 1 {
		if len(batch) == 0 {
			pause(waitNanos)
			return 0, nil
		}
		done[0] = completion{slot: batch[0], result: b.perform(&b.slots[batch[0]])}
		return 1, nil
	}
	for _, i := range batch {
		b.requests <- i // never blocks: there are as many places as slots
	}
	n := 0
	for {
		select {
		case done[n] = <-b.results:
			n++
			continue
		default:
		}
		if n > 0 || waitNanos <= 0 {
			return n, nil
		}
		b.timer.Reset(time.Duration(waitNanos))
		select {
		case done[n] = <-b.results:
			n++
		case <-b.timer.C:
			return 0, nil
		}
	}
}

func (b *psyncBackend) cpuNanos() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum int64
	for i := range b.clocks {
		sum += b.clocks[i].nanos()
	}
	return sum
}

func (b *psyncBackend) stop() error {
	if b.requests != nil {
		close(b.requests)
		b.threads.Wait()
		b.timer.Stop()
		b.requests = nil
	}
	return nil
}

func (b *psyncBackend) close() error { return nil }

// perform does one operation and returns the bytes transferred or −errno.
func perform(s *slot) int32 {
	switch s.kind {
	case opRead, opWrite:
		if s.file.flags|s.file.atomic != 0 {
			return performVector(s)
		}
	}
	switch s.kind {
	case opRead:
		return s.file.readAt(s.buffer[:s.size], s.offset)
	case opWrite:
		return s.file.writeAt(s.buffer[:s.size], s.offset)
	case opTrim:
		return s.file.trim(s.offset, s.size)
	case opDataSync:
		return s.file.sync(true)
	case opRangeSync:
		return s.file.syncRange(s.offset, s.span, s.flags)
	}
	return s.file.sync(false)
}

// lap returns the most that one of its threads used and waited since the former lap.
func (b *psyncBackend) lap() (busiest, waited int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.clocks {
		c, w := b.clocks[i].lap()
		busiest, waited = max(busiest, c), max(waited, w)
	}
	return busiest, waited
}
