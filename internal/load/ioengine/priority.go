package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// prioritize gives an operation its priority, by its number: that of a write in its stream, that of a read in its lane.
func (l *lane) prioritize(s *pattern.Stream, sl *backend.Slot) {
	sl.Priority = 0
	if sl.Direction > uint8(interval.Write) {
		return
	}
	shares := l.Job.Priorities.Shares[sl.Direction]
	if len(shares) == 0 {
		return
	}
	number := l.N
	if sl.Direction == uint8(interval.Write) {
		number = s.Writes
	}
	drawn := load.DrawBelow(s.PriorityKey+uint64(sl.Direction), number, 100)
	for i := range shares {
		if of := &shares[i]; (of.Size == 0 || of.Size == sl.Size) && drawn < of.UpTo {
			sl.Priority = of.Priority
			return
		}
	}
}
