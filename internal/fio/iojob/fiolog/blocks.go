package fiolog

import (
	"sync"
	"time"
)

// block is filled by a thread of the load and emptied by the writer.
type block struct{ operations []operation }

const (
	// memoryBytesMax bounds the memory of operations that wait for the writer: 700,000 operations.
	memoryBytesMax = 32 << 20
	blockLengthMax = 4096
	blockLengthMin = 64
)

// freeBlocks are the empty blocks of all recorders. The block that was emptied last is used first: it is still in a cache,
// whereas a queue would cycle through the whole memory.
type freeBlocks struct {
	length, most int // of a block; number of blocks

	mu      sync.Mutex
	stack   []*block
	made    int
	waiting int
	handed  chan *block // to waiting recorders
}

// init allocates for this many recorders, so that each can fill a block while the writer has another.
func (f *freeBlocks) init(recorders int) {
	f.length = min(max(memoryBytesMax/operationBytes/max(1, 2*recorders), blockLengthMin), blockLengthMax)
	f.most = max(memoryBytesMax/operationBytes/f.length, 2*recorders+1)
	f.stack, f.handed = make([]*block, 0, f.most), make(chan *block, f.most)
}

// take returns an empty block. It waits if all are full, and returns nil if none becomes free.
func (f *freeBlocks) take() (b *block, waited time.Duration) {
	f.mu.Lock()
	if n := len(f.stack); n > 0 {
		b, f.stack = f.stack[n-1], f.stack[:n-1]
		f.mu.Unlock()
		return b, 0
	}
	if f.made < f.most {
		f.made++
		f.mu.Unlock()
		return &block{operations: make([]operation, 0, f.length)}, 0
	}
	f.waiting++
	f.mu.Unlock()
	begun := time.Now()
	timer := time.NewTimer(waitMax)
	defer timer.Stop()
	select {
	case b = <-f.handed:
		return b, time.Since(begun)
	case <-timer.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case b = <-f.handed: // handed over at the last moment, by a writer that considers the log closed
	default:
		f.waiting--
	}
	return b, time.Since(begun)
}

// give returns an emptied block. It never blocks: there is room for every block.
func (f *freeBlocks) give(b *block) {
	b.operations = b.operations[:0]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting > 0 {
		f.waiting--
		f.handed <- b
		return
	}
	f.stack = append(f.stack, b)
}
