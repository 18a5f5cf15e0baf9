// Package shares has the state shared by concurrent jobs, in one workload or in several: Flows keep their operations in
// proportion, and Ramps end when all jobs of a group have moved a number of bytes.
//
//	job ──Of──▶ the place of one clone, nil where it shares nothing
//
// The threads of all clones access this state; only joining and leaving take a lock.
package shares

import (
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Flows are the groups of jobs that are balanced against each other, by flow_id. The zero value is ready to use. Workloads
// that run together may share one.
type Flows struct {
	mu     sync.Mutex
	groups map[int]*flowGroup
}

// flowGroup is what the lanes of one flow_id share. Only joining and leaving take the lock.
type flowGroup struct {
	mu     sync.Mutex
	weight atomic.Uint64 // of all that are in it
	issued atomic.Uint64 // operations of all of them in this epoch
	epoch  atomic.Uint32 // begins when one joins or leaves
}

// Flow is the place of one lane in its group. It belongs to the lane's worker.
type Flow struct {
	group  *flowGroup
	weight uint64
	ahead  uint64 // operations that it may do beyond its share
	Sleep  int64  // how long it waits before it looks again; 0: flowPollNanos
	inside bool
	epoch  uint32
	issued uint64 // in this epoch
}

const (
	// FlowPollNanos is the default of flow_sleep: the poll interval of a lane that is ahead.
	FlowPollNanos = int64(50_000)
	// flowAheadMin lets a lane go on while the others are being woken.
	flowAheadMin = 16
)

// Of returns the place of a clone of a job, nil where it has no weight.
func (f *Flows) Of(job *program.Job) *Flow {
	c := &job.Fio.Control
	if c.Flow <= 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[c.FlowID]
	if g == nil {
		if f.groups == nil {
			f.groups = map[int]*flowGroup{}
		}
		g = &flowGroup{}
		f.groups[c.FlowID] = g
	}
	// A deep queue drains faster than its lane wakes up.
	return &Flow{group: g, weight: uint64(c.Flow), ahead: max(flowAheadMin, 2*uint64(job.Depth)), Sleep: int64(c.FlowSleep)}
}

// Join begins to count; further calls have no effect.
func (f *Flow) Join() {
	if !f.inside {
		f.inside = true
		f.group.change(f.weight)
	}
}

// Leave removes this lane from the group so that the others continue without it; f may be nil.
func (f *Flow) Leave() {
	if f != nil && f.inside {
		f.inside = false
		f.group.change(-f.weight)
	}
}

// change adds a weight, which may be the complement of one, and begins an epoch.
func (g *flowGroup) change(weight uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.weight.Add(weight)
	g.issued.Store(0) // first: what is counted into the new epoch must not be erased
	g.epoch.Add(1)
}

// Over reports whether the lane has done its share. Another lane of the group then has not done its share.
func (f *Flow) Over() bool {
	if epoch := f.group.epoch.Load(); epoch != f.epoch {
		f.epoch, f.issued = epoch, 0
	}
	all := f.group.weight.Load()
	return f.issued*all > f.group.issued.Load()*f.weight+f.ahead*all
}

// Count notes one operation.
func (f *Flow) Count() {
	f.issued++
	f.group.issued.Add(1)
}
