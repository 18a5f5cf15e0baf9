package program

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Priorities says which operations of a job have a priority of their own.
type Priorities struct {
	Usual  thread.Priority // of all others
	Shares [2][]priorityShare
}

// priorityShare gives operations of a size (0: of any) a priority where the draw of 100 is below upTo.
type priorityShare struct {
	Size     int64
	UpTo     uint64
	Priority thread.Priority
}

// compilePriorities works out those of a job, nil where no operation has one.
func compilePriorities(j *fiojob.Job) *Priorities {
	c := &j.CommandPriority
	if !c.Active() {
		return nil
	}
	p := &Priorities{Usual: thread.PriorityOf(j)}
	for d := range p.Shares {
		class := c.Class[d]
		if class == 0 {
			class = thread.Realtime
		}
		if c.Percent[d] > 0 {
			p.Shares[d] = []priorityShare{{UpTo: uint64(c.Percent[d]), Priority: thread.NewPriority(class, c.Level[d])}}
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
			p.Shares[d] = append(p.Shares[d], priorityShare{Size: s.Bytes, UpTo: sums[s.Bytes], Priority: priority})
		}
	}
	return p
}

// CheckPriorities refuses priorities where the back end that was chosen has no place for them.
func (p *Program) CheckPriorities() error {
	for i := range p.Jobs {
		s := &p.Jobs[i]
		switch {
		case s.Priorities == nil || s.Kind == backend.KindUring || s.Kind == backend.KindLibaio:
		case s.Kind == backend.KindNull:
			s.Priorities = nil // nothing is submitted
		default:
			key := "cmdprio_percentage"
			if !s.Fio.Has(key) {
				key = "cmdprio_bssplit"
			}
			p.Issues.Errorf(p.optionPos(&s.Fio, key), "priority-without-queue",
				"job %q: single operations have a priority with io_uring and libaio only, and %s does this job", s.Fio.Name, s.Kind)
		}
	}
	return p.Issues.Err()
}
