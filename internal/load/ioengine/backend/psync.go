package backend

import (
	"runtime"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Psync does operations with calls that block: pread and pwrite, preadv2 and pwritev2, or copies of memory. At depth 1 the worker's own thread does them. Above, a pool of
// threads does, one operation each at a time; handing over costs a channel operation each way, which the fall-back for
// machines without io_uring can afford.
type Psync struct {
	slots    []Slot
	kind     Kind
	Settings thread.Settings // of all threads that perform
	perform  func(*Slot) int32
	requests chan int32
	results  chan Completion
	timer    *time.Timer
	threads  sync.WaitGroup
	Depth    int
	clocks   []thread.Clock
	mu       sync.Mutex
}

// PsyncThreadsMax limits the threads of one clone, also for deeper queues.
const PsyncThreadsMax = 64

// NewPsync returns the back end that does operations of some slots with calls that block.
func NewPsync(slots []Slot, kind Kind) *Psync {
	b := &Psync{slots: slots, Depth: len(slots), kind: kind, perform: perform}
	switch kind {
	case KindPvsync2:
		b.perform = performVector
	case KindMmap:
		b.perform = performMapped
	}
	return b
}

func (b *Psync) Start() error {
	if b.Depth <= 1 {
		b.settle()
		return nil
	}
	b.requests = make(chan int32, b.Depth)
	b.results = make(chan Completion, b.Depth)
	b.timer = time.NewTimer(time.Hour)
	for range min(b.Depth, PsyncThreadsMax) {
		b.threads.Go(b.serve)
	}
	return nil
}

// settle is called by every goroutine that performs.
func (b *Psync) settle() {
	if b.kind == KindMmap {
		catchFaults()
	}
}

func (b *Psync) serve() {
	runtime.LockOSThread()
	if b.Settings == (thread.Settings{}) {
		defer runtime.UnlockOSThread()
	}
	_ = b.Settings.Settle() // the worker's own thread has them already, so they are possible
	b.settle()
	own := thread.NewClock()
	b.mu.Lock()
	b.clocks = append(b.clocks, own)
	at := len(b.clocks) - 1
	b.mu.Unlock()
	for i := range b.requests {
		b.results <- Completion{Slot: i, Result: b.perform(&b.slots[i])}
	}
	b.mu.Lock()
	b.clocks[at].Stop()
	b.mu.Unlock()
}

func (b *Psync) Exchange(batch []int32, done []Completion, waitNanos int64) (int, error) {
	if b.Depth <= 1 {
		if len(batch) == 0 {
			thread.Pause(waitNanos)
			return 0, nil
		}
		done[0] = Completion{Slot: batch[0], Result: b.perform(&b.slots[batch[0]])}
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

func (b *Psync) CPUNanos() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum int64
	for i := range b.clocks {
		sum += b.clocks[i].Nanos()
	}
	return sum
}

func (b *Psync) Stop() error {
	if b.requests != nil {
		close(b.requests)
		b.threads.Wait()
		b.timer.Stop()
		b.requests = nil
	}
	return nil
}

func (b *Psync) Close() error { return nil }

// perform does one operation and returns the bytes transferred or −errno.
func perform(s *Slot) int32 {
	switch s.Kind {
	case OpRead, OpWrite:
		if s.File.flags|s.File.Atomic != 0 {
			return performVector(s)
		}
	}
	switch s.Kind {
	case OpRead:
		return s.File.readAt(s.Buffer[:s.Size], s.Offset)
	case OpWrite:
		return s.File.writeAt(s.Buffer[:s.Size], s.Offset)
	case OpTrim:
		return s.File.trim(s.Offset, s.Size)
	case OpDataSync:
		return s.File.Sync(true)
	case OpRangeSync:
		return s.File.syncRange(s.Offset, s.Span, s.Flags)
	}
	return s.File.Sync(false)
}

// Lap returns the most that one of its threads used and waited since the former lap.
func (b *Psync) Lap() (busiest, waited int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.clocks {
		c, w := b.clocks[i].Lap()
		busiest, waited = max(busiest, c), max(waited, w)
	}
	return busiest, waited
}
