package pattern

import (
	"github.com/braggdev/bragg/internal/load"
)

// Everything random of the engine is drawn from keys, which form a tree. A key is a pure function of the path to it:
//
//	seed of the run ─ number of the workload ─ ordinal of the VM ─ number of the start, prefill or not
//	    ─ number of the job ─ [randseed] ─ number of the clone
//	    clone ─ schedule of a direction, mix of directions
//	    clone ─ number of the device = stream
//	        stream ─ deck, places of hot blocks, content
//	        content ─ [block of a write] ─ repeats
//	        stream ─ cursor of a direction ─ size, place and choice of operation n
//
// So operation n of a direction of a stream is f(seed, stream, n), whatever the machine did meanwhile: repeats with one
// seed do the same, and no two clones, devices, VMs, workloads or starts of one share offsets or content. The n-th write
// of a stream, counted in the order of issue, has content that is a function of the stream's content key and n alone.
//
// No name is in it: a job has the draws of its place, as in fio, so that one that only verifies need not be called like the one
// that wrote. Workloads of a scenario differ by their place in it.
//
// These numbers and the functions behind them are part of what later runs rely on to check what earlier ones wrote: a
// golden test keeps them.
const (
	KeyMix      = 101 // of a clone
	KeyPacer    = 41  // of a clone, plus the direction
	KeyDelay    = 51  // of a clone
	KeyFiles    = 52  // of a clone
	KeyContent  = 11  // of a stream
	KeyTrimmed  = 1   // of a content
	KeyHot      = 13  // of a stream
	KeyPriority = 15  // of a stream; draws for a direction take it plus the direction
	KeyDeck     = 21  // of a stream, plus the direction
	KeyCursor   = 31  // of a stream, plus the direction
	keySize     = 1   // of a cursor
	keyPlace    = 2   // of a cursor
	keyChoice   = 3   // of a cursor
	keyTiles    = 1   // of a pass of a deck
	keyStripes  = 2   // of a pass of a deck
)

// WorkloadKey is the root of all keys of a workload on one VM.
func WorkloadKey(w *load.Workload) uint64 {
	start := 2 * uint64(w.Instance)
	if w.Prefill {
		start++
	}
	return load.Key(load.Key(load.Key(w.Seed, uint64(w.Number)), uint64(w.Ordinal)), start)
}
