package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
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

// priorities says which operations of a job have a priority of their own.
type priorities struct {
	usual  thread.Priority // of all others
	shares [2][]priorityShare
}

// priorityShare gives operations of a size (0: of any) a priority where the draw of 100 is below upTo.
type priorityShare struct {
	size     int64
	upTo     uint64
	priority thread.Priority
}

// compilePriorities works out those of a job, nil where no operation has one.
func compilePriorities(j *fiojob.Job) *priorities {
	c := &j.CommandPriority
	if !c.Active() {
		return nil
	}
	p := &priorities{usual: thread.PriorityOf(j)}
	for d := range p.shares {
		class := c.Class[d]
		if class == 0 {
			class = thread.Realtime
		}
		if c.Percent[d] > 0 {
			p.shares[d] = []priorityShare{{upTo: uint64(c.Percent[d]), priority: thread.NewPriority(class, c.Level[d])}}
		}
		sums := map[int64]uint64{}
		for _, s := range c.Split[d] {
			priority := thread.NewPriority(s.Class, s.Level)
			switch {
			case s.Class == 0 && s.Level > 0:
				priority = thread.NewPriority(thread.BestEffort, s.Level)
			case s.Class < 0:
				priority = thread.NewPriority(class, c.Level[d])
			}
			sums[s.Bytes] += uint64(s.Percent)
			p.shares[d] = append(p.shares[d], priorityShare{size: s.Bytes, upTo: sums[s.Bytes], priority: priority})
		}
	}
	return p
}

// checkPriorities refuses priorities where the back end that was chosen has no place for them.
func (p *program) checkPriorities() error {
	for i := range p.jobs {
		s := &p.jobs[i]
		switch {
		case s.priorities == nil || s.kind == backend.KindUring || s.kind == backend.KindLibaio:
		case s.kind == backend.KindNull:
			s.priorities = nil // nothing is submitted
		default:
			key := "cmdprio_percentage"
			if !s.job.Has(key) {
				key = "cmdprio_bssplit"
			}
			p.issues.Errorf(p.optionPos(&s.job, key), "priority-without-queue",
				"job %q: single operations have a priority with io_uring and libaio only, and %s does this job", s.job.Name, s.kind)
		}
	}
	return p.issues.Err()
}

// prioritize gives an operation its priority, by its number: that of a write in its stream, that of a read in its lane.
func (l *lane) prioritize(s *pattern.Stream, sl *backend.Slot) {
	sl.Priority = 0
	if sl.Direction > uint8(interval.Write) {
		return
	}
	shares := l.job.priorities.shares[sl.Direction]
	if len(shares) == 0 {
		return
	}
	number := l.N
	if sl.Direction == uint8(interval.Write) {
		number = s.Writes
	}
	drawn := load.DrawBelow(s.PriorityKey+uint64(sl.Direction), number, 100)
	for i := range shares {
		if of := &shares[i]; (of.size == 0 || of.size == sl.Size) && drawn < of.upTo {
			sl.Priority = of.priority
			return
		}
	}
}

// reservePriorities makes room for the latencies of every priority that lanes of a worker may have.
func (w *worker) reservePriorities() {
	for i := range w.lanes {
		p := w.lanes[i].job.priorities
		if p == nil {
			continue
		}
		for d := range p.shares {
			if active := w.lanes[i].job.active(); !active[d] {
				continue
			}
			w.account.reservePriority(d, p.usual)
			for _, s := range p.shares[d] {
				w.account.reservePriority(d, s.priority)
			}
		}
	}
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

// prioritized records one successful operation under its priority.
func (a *Account) prioritized(p *priorities, s *backend.Slot, now int64) {
	of := s.Priority
	if of == 0 {
		of = p.usual
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
