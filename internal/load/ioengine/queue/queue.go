// Package queue is what issuing operations and verifying them share of a clone that runs.
//
//	Queue: a clone's Sequence of operations, the files of its streams, its slots ──Take──▶ a slot in the worker's Batch
//
// It decides nothing: a lane says when an operation is issued, and a verifier what is read back.
package queue

import (
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Queue is what issuing and verifying share of a clone that runs: its operations, where they go, and its slots.
type Queue struct {
	Spec             *program.Clone
	Job              *program.Job
	pattern.Sequence                // of its operations
	Targets          []Target       // of its streams
	All              []backend.Slot // of its worker
	Free             []int32        // those that it has and does not use, a stack
	Batch            *Batch         // of its worker
	InFlight         int
	Start            int64 // first operation
	Closed           ClosedReason
}

// Batch is what is handed to a back end next: numbers of slots.
type Batch struct {
	Slots []int32
	Count int
}

// Take puts a free slot into the batch.
func (q *Queue) Take() *backend.Slot {
	top := len(q.Free) - 1
	i := q.Free[top]
	q.Free = q.Free[:top]
	q.InFlight++
	q.Batch.Slots[q.Batch.Count] = i
	q.Batch.Count++
	return &q.All[i]
}

// ClosedReason says why a lane issues nothing any more.
type ClosedReason uint8

const (
	StillOpen ClosedReason = iota
	ClosedDone
	ClosedTime
)

// Target is where a stream goes while its lane runs.
type Target struct {
	File *backend.File
	// DirtyFrom and dirtyTo are what was written since the last sync_file_range; 0 and 0: nothing, or not requested.
	DirtyFrom, DirtyTo int64
}
