package measuring

import (
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/stat"
)

// Priorities of single operations. The kernel takes one with each operation of io_uring and libaio; without it an operation
// has that of the thread. Which operations have one is drawn from the stream's key and the operation's number, as its
// place is.

// PriorityLatency are the latencies of operations of one priority, in nanoseconds.
type PriorityLatency struct {
	Priority          thread.Priority
	Service, Response stat.Histogram
}

func (a *Account) reservePriority(direction int, p thread.Priority) {
	if a.priority(direction, p) != nil {
		return
	}
	a.Priorities[direction] = append(a.Priorities[direction], PriorityLatency{Priority: p})
	a.priority(direction, p).Service.Reserve()
	a.priority(direction, p).Response.Reserve()
}

func (a *Account) priority(direction int, p thread.Priority) *PriorityLatency {
	list := a.Priorities[direction]
	for i := range list {
		if list[i].Priority == p {
			return &list[i]
		}
	}
	return nil
}

// Prioritized records one successful operation under its priority.
func (a *Account) Prioritized(p *program.Priorities, s *backend.Slot, now int64) {
	of := s.Priority
	if of == 0 {
		of = p.Usual
	}
	if into := a.priority(int(s.Direction), of); into != nil {
		into.Service.Record(uint64(max(0, now-s.Submitted)))
		into.Response.Record(uint64(max(0, now-s.Intended)))
	}
}

// addPriorities merges those of another account.
func (a *Account) addPriorities(o *Account) {
	for d := range o.Priorities {
		for i := range o.Priorities[d] {
			from := &o.Priorities[d][i]
			into := a.priority(d, from.Priority)
			if into == nil {
				a.Priorities[d] = append(a.Priorities[d], PriorityLatency{Priority: from.Priority})
				into = a.priority(d, from.Priority)
			}
			into.Service.Merge(&from.Service)
			into.Response.Merge(&from.Response)
		}
	}
}

// ReservePriorities makes room for the latencies of every priority that operations of a job may have.
func (a *Account) ReservePriorities(job *program.Job) {
	p := job.Priorities
	if p == nil {
		return
	}
	active := job.Active()
	for d := range p.Shares {
		if !active[d] {
			continue
		}
		a.reservePriority(d, p.Usual)
		for _, s := range p.Shares[d] {
			a.reservePriority(d, s.Priority)
		}
	}
}
