package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// schedule says when the operations of a lane are due that has rates; directions without one go as fast as the queue allows.
type schedule struct {
	pacers    [interval.DirectionCount]load.Pacer
	due       [interval.DirectionCount]load.Pacer // copies that count what is due and not yet issued
	paced     [interval.DirectionCount]bool
	timed     bool   // some direction is paced
	inBytes   bool   // rates count bytes
	issued    uint64 // by the pacers
	rampDue   uint64 // before operations counted
	dropAfter int64  // operations that are later are dropped; 0: none
	dropped   uint64 // after the ramp
}

func newSchedule(spec *program.Clone, active *[interval.DirectionCount]bool) (s schedule) {
	s.inBytes = spec.InBytes
	for d, rate := range spec.Rate {
		s.paced[d] = active[d] && rate > 0
		s.timed = s.timed || s.paced[d]
	}
	return s
}

func (s *schedule) begin(spec *program.Clone, start int64, poisson bool) {
	for d := range s.pacers {
		if s.paced[d] {
			key := load.Key(spec.Key, uint64(pattern.KeyPacer+d))
			s.pacers[d] = load.NewPacer(start, spec.Rate[d], poisson, key)
			s.due[d] = s.pacers[d]
		}
	}
}

// first returns the direction whose operation is due first, and when. There is one.
func (s *schedule) first() (direction int, due int64) {
	direction = -1
	for d := range s.pacers {
		if s.paced[d] && (direction < 0 || s.pacers[d].Next() < due) {
			direction, due = d, s.pacers[d].Next()
		}
	}
	return direction, due
}

// advance notes that an operation of a size was taken off the schedule of a direction.
func (s *schedule) advance(direction int, size float64) {
	s.issued++
	s.pacers[direction].Advance(s.weight(size))
}

// weight is what an operation counts in the schedule of its rate.
func (s *schedule) weight(size float64) float64 {
	if s.inBytes {
		return size
	}
	return 1
}

// dueBy returns how many operations are placed before t, of which limit at most are not issued.
func (s *schedule) dueBy(t int64, limit uint64, job *program.Job) (sum uint64) {
	for d := range s.due {
		if !s.paced[d] {
			continue
		}
		if s.due[d].Count() < s.pacers[d].Count() {
			s.due[d] = s.pacers[d]
		}
		ahead := s.pacers[d].Count()
		for s.due[d].Next() < t && s.due[d].Count()-ahead < limit {
			s.due[d].Advance(s.weight(job.Sizes[d].Mean()))
		}
		sum += s.due[d].Count()
	}
	return sum
}

// dropLate takes off the schedules what is too late at now.
func (s *schedule) dropLate(now int64, l *lane) {
	if s.dropAfter == 0 || !s.timed {
		return
	}
	for d := range s.pacers {
		for s.paced[d] && s.pacers[d].Next() < now-s.dropAfter {
			if s.pacers[d].Next() >= l.measureFrom {
				s.dropped++
			}
			s.advance(d, l.Job.Sizes[d].Mean())
		}
	}
}

// dueBy returns how many operations the schedules have placed before t. t never goes back. A job that is bound by its
// size has no more of them than it has left to do.
func (l *lane) dueBy(t int64) uint64 {
	t = min(t, l.end)
	if l.replay != nil {
		if l.replay.NoStall {
			return 0
		}
		return l.replay.DueBy(t-l.Start, l.issued)
	}
	if l.Closed == queue.ClosedDone {
		return l.schedule.dueBy(t, 0, l.Job)
	}
	return l.schedule.dueBy(t, l.remaining(), l.Job)
}

// remaining returns how many operations are left, estimated where sizes are mixed.
func (l *lane) remaining() uint64 {
	var bytes int64
	for i := range l.Streams {
		if l.Streams[i].Left == pattern.Unbounded {
			return uint64(max(0, l.Left))
		}
		bytes += max(0, l.Streams[i].Left)
	}
	mean := l.Job.SizeMean()
	return min(uint64(max(0, l.Left)), uint64(math.Ceil(float64(bytes)/mean)))
}
