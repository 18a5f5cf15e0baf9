package ioengine

import (
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Jobs with a weight (flow) that share a flow_id are kept in proportion: each may do its share, by weight, of what all of
// them do, and a little more. Who is ahead waits for the others; when one of them ends, the rest share what is left among
// themselves. What counts is operations that were issued since the last one joined or left.

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

// flow is the place of one lane in its group. It belongs to the lane's worker.
type flow struct {
	group  *flowGroup
	weight uint64
	ahead  uint64 // operations that it may do beyond its share
	sleep  int64  // how long it waits before it looks again; 0: flowPollNanos
	inside bool
	epoch  uint32
	issued uint64 // in this epoch
}

const (
	// flowPollNanos is how soon a lane that is ahead looks again where flow_sleep does not say it.
	flowPollNanos = int64(50_000)
	// flowAheadMin lets a lane go on while the others are being woken.
	flowAheadMin = 16
)

// of returns the place of a clone of a job, nil where it has no weight.
func (f *Flows) of(job *program.Job) *flow {
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
	return &flow{group: g, weight: uint64(c.Flow), ahead: max(flowAheadMin, 2*uint64(job.Depth)), sleep: int64(c.FlowSleep)}
}

// join begins to count; nothing where it has begun already.
func (f *flow) join() {
	if !f.inside {
		f.inside = true
		f.group.change(f.weight)
	}
}

// leave lets the others go on without this lane; f may be nil.
func (f *flow) leave() {
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

// over tells whether the lane has done its share. Somebody else of the group then has not done theirs.
func (f *flow) over() bool {
	if epoch := f.group.epoch.Load(); epoch != f.epoch {
		f.epoch, f.issued = epoch, 0
	}
	all := f.group.weight.Load()
	return f.issued*all > f.group.issued.Load()*f.weight+f.ahead*all
}

// count notes one operation.
func (f *flow) count() {
	f.issued++
	f.group.issued.Add(1)
}

// heldBack ends the filling of a lane that is ahead of its flow, and returns when to look again.
func (l *lane) heldBack(now int64) int64 {
	if l.flow.sleep == 0 {
		return min(now+flowPollNanos, l.end)
	}
	l.pauseUntil = now + l.flow.sleep
	return min(l.pauseUntil, l.end)
}

// ShareFlows balances the jobs of this workload together with those of others that share flows. Jobs that start at once hold
// back the others from now on, so that nobody runs ahead while threads are still being started, unless later says that this
// workload begins when another one has ended. It must be called before Run; Run and Close give the others free.
func (r Run) ShareFlows(flows *Flows, later bool) {
	r.enterFlows(flows)
	if later || len(r.phases) == 0 {
		return
	}
	for _, w := range r.phases[0] {
		w.joinFlows()
	}
}

// enterFlows gives each lane its place.
func (in *instance) enterFlows(flows *Flows) {
	for _, workers := range in.phases {
		for _, w := range workers {
			for i := range w.lanes {
				w.lanes[i].flow = flows.of(w.lanes[i].Job)
			}
		}
	}
}

// joinFlows is for a worker that begins: lanes that start with it count from now on.
func (w *worker) joinFlows() {
	for i := range w.lanes {
		if l := &w.lanes[i]; l.flow != nil && l.Spec.Delay(l.Job) == 0 {
			l.flow.join()
		}
	}
}

// leaveFlows is for a worker that ends: its lanes hold nobody back any more.
func (w *worker) leaveFlows() {
	for i := range w.lanes {
		w.lanes[i].flow.leave()
	}
}
