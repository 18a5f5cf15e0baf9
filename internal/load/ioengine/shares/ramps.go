package shares

import (
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Ramps are the ramps by size of jobs, by reporting group. The zero value is ready to use. Workloads that run together may
// share one.
type Ramps struct {
	mu     sync.Mutex
	groups map[int]*Ramp
}

// Ramp is one ramp by size, of one lane or of all lanes of a group.
type Ramp struct {
	want    int64 // bytes; the largest ramp_size of its jobs. Fixed before the start
	done    atomic.Int64
	EndedAt atomic.Int64 // on the axis of the workload; 0: it goes on
}

// Of returns the ramp of a clone of a job, nil where no size ends it.
func (r *Ramps) Of(job *program.Job) *Ramp {
	size := job.Fio.RampSize
	if size <= 0 {
		return nil
	}
	if !job.Fio.GroupReporting {
		return &Ramp{want: size}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = map[int]*Ramp{}
	}
	g := r.groups[job.Fio.Group]
	if g == nil {
		g = &Ramp{}
		r.groups[job.Fio.Group] = g
	}
	g.want = max(g.want, size)
	return g
}

// Add counts the bytes of an operation that ended at now. Failed operations count too: a failing device must not keep a
// job in its ramp forever.
func (r *Ramp) Add(size, now int64) {
	if r.done.Add(size) >= r.want {
		r.EndedAt.CompareAndSwap(0, now)
	}
}
