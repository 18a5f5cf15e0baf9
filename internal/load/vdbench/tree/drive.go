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
}

// slack is by how many operations of all workloads one of them may be ahead of its share.
const slack = 64

// Run runs all workloads, and returns when their threads have ended. Idle are those that found no file before the end.
func (d *Drive) Run(parent context.Context) (idle []string, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	d.turn = sync.NewCond(&d.mu)
	d.issued, d.ended = make([]float64, len(d.Works)), make([]int, len(d.Works))
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
					d.leave(i)
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
	return d.idle, err
}

func (d *Drive) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.Broadcast()
}

// leave notes the end of a thread without work. The shares of the others do not wait for its workload any more.
func (d *Drive) leave(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended[i]++; d.ended[i] == d.Works[i].Threads {
		d.idle = append(d.idle, fmt.Sprintf("%s: %s", d.Works[i].Name, errNone))
	}
	d.turn.Broadcast()
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
		return due, err == nil && d.Now() < d.Until
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
