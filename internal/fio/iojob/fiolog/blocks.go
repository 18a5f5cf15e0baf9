package fiolog

import (
	"sync"
	"time"
)

// block is what a thread of the load fills and the writer empties.
type block struct{ operations []operation }

const (
	// memoryBytesMax bounds what operations wait in for the writer; 700,000 fit.
	memoryBytesMax = 32 << 20
	blockLengthMax = 4096
	blockLengthMin = 64
)

// freeBlocks are the empty blocks of all recorders. The one that was emptied last is used first: it is still in a cache, and
// a queue would send every operation through all the memory there is.
type freeBlocks struct {
	length, most int // of a block; blocks

	mu      sync.Mutex
	stack   []*block
	made    int
	waiting int
	handed  chan *block // to who waits
}

// init makes room for that many recorders, each of which can fill a block while the writer has another.
func (f *freeBlocks) init(recorders int) {
	f.length = min(max(memoryBytesMax/operationBytes/max(1, 2*recorders), blockLengthMin), blockLengthMax)
	f.most = max(memoryBytesMax/operationBytes/f.length, 2*recorders+1)
	f.stack, f.handed = make([]*block, 0, f.most), make(chan *block, f.most)
}

// take returns an empty block. It waits for one when all are full, and returns nil when none comes.
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
	case b = <-f.handed: // handed over in the last moment, by a writer that considers the log closed
	default:
		f.waiting--
	}
	return b, time.Since(begun)
}

// give takes an emptied block back. It never blocks: there is a place for every block.
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
