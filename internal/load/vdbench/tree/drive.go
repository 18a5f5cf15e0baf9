package tree

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/wait"
)

// Record is a completed operation. Times are nanoseconds on the axis of Now.
type Record struct {
	Operation       Operation
	Due, Begin, End int64
	Bytes           int64
	Failed          string // class of its failure
}

// Drive runs workloads for a time.
type Drive struct {
	Works  []*Work
	Rate   float64 // operations per second of all workloads; 0: as fast as possible
	Linear bool    // operations of a rate are equally spaced
	Keep   bool    // without a rate, the shares of the workloads are kept
	Until  int64   // end, on the axis of Now
	Now    func() int64
	// Report takes operations from several goroutines. It reports whether the run goes on.
	Report func(Record) bool

	mu     sync.Mutex
	pacers []load.Pacer
	turn   *sync.Cond
	issued []float64 // divided by the share of the workload
	ended  []int     // threads of a workload that ended
	idle   []string
	late   uint64 // operations that were taken from a schedule, and not issued before the end

	changes uint64 // of what exists
	stuck   []int  // threads of a workload that found nothing since the last change
}

// Result is how a Drive ended.
type Result struct {
	Idle    []string // workloads that found no file before the end
	Dropped uint64   // operations that were due, and never issued
}

// slack is by how many operations of all workloads one of them may be ahead of its share.
const slack = 64

// Run runs all workloads, and returns when their threads have ended.
func (d *Drive) Run(parent context.Context) (r Result, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	d.turn = sync.NewCond(&d.mu)
	d.issued, d.ended, d.stuck = make([]float64, len(d.Works)), make([]int, len(d.Works)), make([]int, len(d.Works))
	start := d.Now()
	for _, w := range d.Works {
		if d.Rate > 0 {
			d.pacers = append(d.pacers, load.NewPacer(start, d.Rate*w.Share, !d.Linear, load.Key(w.Key, 1)))
		}
	}
	stop := context.AfterFunc(ctx, d.wake)
	defer stop()
	end := time.AfterFunc(time.Duration(d.Until-start), d.wake)
	defer end.Stop()
	var group sync.WaitGroup
	cursors := make([]atomic.Int64, len(d.Works))
	for i, w := range d.Works {
		for k := range w.Threads {
			key := load.Key(load.Key(w.Key, 2), uint64(k))
			t := &thread{Work: w, drive: d, index: i, cursor: &cursors[i], key: key, buffer: newContent(key)}
			group.Go(func() {
				err := t.run(ctx)
				switch {
				case errors.Is(err, errNone):
					d.leave(t)
				case err != nil && !errors.Is(err, errOver):
					cancel(err)
				}
			})
		}
	}
	group.Wait()
	if parent.Err() == nil {
		err = context.Cause(ctx)
	}
	return Result{d.idle, d.late + d.backlog()}, err
}

// backlogMax is how much of a backlog is counted by its schedule. The rest is the rate times its time.
const backlogMax = 1_000_000

// backlog is how many operations were due before now that no thread has taken from the schedule.
func (d *Drive) backlog() (n uint64) {
	end := min(d.Now(), d.Until)
	for i := range d.pacers {
		p := &d.pacers[i]
		for range backlogMax {
			if p.Next() >= end {
				break
			}
			p.Advance(1)
			n++
		}
		n += uint64(float64(max(0, end-p.Next())) / 1e9 * d.Rate * d.Works[i].Share)
	}
	return n
}

func (d *Drive) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.Broadcast()
}

// leave notes the end of a thread without work. The shares of the others do not wait for its workload any more.
func (d *Drive) leave(t *thread) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.stuckAt == d.changes+1 {
		d.stuck[t.index]--
	}
	if d.ended[t.index]++; d.ended[t.index] == t.Threads {
		d.idle = append(d.idle, fmt.Sprintf("%s: %s", t.Name, errNone))
	}
	d.turn.Broadcast()
}

// makes reports whether an operation changes what others find, or lets a third one do so: a file needs its folder, and a folder goes when its
// files have gone.
func (o Operation) makes(forOperation Operation) bool {
	return o == Create || o == Delete || o == MakeDir || o == RmDir || o == Write && forOperation.Moves()
}

// change notes that something exists, or does not exist, that others may look for.
func (d *Drive) change() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	clear(d.stuck)
}

// seen is the number of changes so far.
func (d *Drive) seen() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

// hope reports whether another thread may still make what a thread did not find after a number of changes: one of its tree that makes such
// things, and found something itself.
func (d *Drive) hope(t *thread, seen uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen != d.changes {
		return true
	}
	if t.stuckAt != seen+1 {
		t.stuckAt = seen + 1
		d.stuck[t.index]++
	}
	for k, w := range d.Works {
		if w.Tree == t.Tree && w.Operation.makes(t.Operation) && d.ended[k]+d.stuck[k] < w.Threads {
			return true
		}
	}
	return false
}

// next waits until a thread may do an operation, and returns when it was due: 0 without a rate.
func (d *Drive) next(ctx context.Context, i int) (due int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Rate > 0 {
		p := &d.pacers[i]
		if due = p.Next(); due >= d.Until {
			d.mu.Unlock()
			_ = wait.For(ctx, time.Duration(d.Until-d.Now()))
			d.mu.Lock()
			return 0, false
		}
		p.Advance(1)
		d.mu.Unlock()
		err := wait.For(ctx, time.Duration(due-d.Now()))
		d.mu.Lock()
		now := d.Now()
		if ok = err == nil && now < d.Until; !ok && due < now {
			d.late++
		}
		return due, ok
	}
	for d.Keep && d.ahead(i) && ctx.Err() == nil && d.Now() < d.Until {
		d.turn.Wait()
	}
	if ctx.Err() != nil || d.Now() >= d.Until {
		return 0, false
	}
	d.issued[i] += 1 / d.Works[i].Share
	if d.Keep {
		d.turn.Broadcast()
	}
	return 0, true
}

// ahead reports whether a workload has done more than its share.
func (d *Drive) ahead(i int) bool {
	for k := range d.Works {
		if d.ended[k] < d.Works[k].Threads && d.issued[i] > d.issued[k]+slack {
			return true
		}
	}
	return false
}
