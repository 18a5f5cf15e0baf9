package ioengine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// Operation is one operation of a plan.
type Operation struct {
	Job       string
	Clone     int
	Device    string
	Direction interval.Direction
	Offset    int64
	Size      int64
	Sync      string // "sync", "datasync" or "sync_file_range" for a flush, which moves nothing
	DueNanos  int64  // in an open loop, from the start of the workload; 0 in a closed loop
}

// Operations calls each for every operation that w would perform, clone after clone in the order of issue. If each
// returns false, Operations continues with the next clone. No device is accessed. A closed loop that is limited by time
// only never ends. A run with the same seed performs the same operations, because they do not depend on the speed of
// the device; only the order of directions does, if one of two has a rate.
func (g Generator) Operations(w load.Workload, each func(Operation) bool) error {
	file, _, err := program.Read(w)
	if err != nil {
		return err
	}
	return g.OperationsOfJobs(w, file.Jobs(), func(o Operation) bool { return o.Sync != "" || each(o) })
}

// OperationsOfJobs is Operations for parsed and resolved jobs. It includes flushes.
func (g Generator) OperationsOfJobs(w load.Workload, jobs []fiojob.Job, each func(Operation) bool) error {
	w.Options = map[string]string{program.OptionBackend: string(backend.KindNull)}
	p, err := g.compile(w, jobs)
	if err != nil {
		return err
	}
	for i := range p.Jobs {
		job := &p.Jobs[i]
		job.Depth = 1
		for c := range job.Clones {
			l := newLane(&job.Clones[c], job, nil)
			l.Free = append(l.Free, 0)
			l.begin(0)
			if err := l.replay.StartDry(); err != nil {
				return err
			}
			dryRun(&l, func(s *backend.Slot) bool {
				o := Operation{
					Job: job.Fio.Name, Clone: c, Device: w.Devices[s.Device].Name,
					Direction: interval.Direction(s.Direction), Offset: s.Offset, Size: s.Size,
				}
				switch s.Kind {
				case backend.OpSync:
					o.Sync = "sync"
				case backend.OpDataSync:
					o.Sync = "datasync"
				case backend.OpRangeSync:
					o.Sync, o.Size = "sync_file_range", s.Span
				}
				if o.Sync == "" && s.Intended != backend.Never {
					o.DueNanos = s.Intended
				}
				return each(o)
			})
			err := l.replay.Failure()
			l.replay.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// dryRun lets a lane issue one operation after the other, each completing at once, with the clock moving from one due
// time to the next.
func dryRun(l *lane, each func(*backend.Slot) bool) {
	w := &worker{flight: flight{slots: make([]backend.Slot, 1), batch: queue.Batch{Slots: make([]int32, 1)}}}
	l.Batch, l.All = &w.batch, w.slots
	for now := int64(0); ; {
		w.batch.Count = 0
		wake := l.fill(w, now)
		if w.batch.Count == 0 {
			if wake == backend.Never {
				return
			}
			now = max(now+1, wake)
			continue
		}
		l.Free = append(l.Free, 0)
		l.InFlight = 0
		l.done(&w.slots[0])
		if !each(&w.slots[0]) {
			return
		}
	}
}

// String is the operation as one line of a plan.
func (o Operation) String() string {
	return fmt.Sprintf("%d %s.%d %s %s %d %d", o.DueNanos/1000, o.Job, o.Clone, o.Device, o.Direction, o.Offset, o.Size)
}
