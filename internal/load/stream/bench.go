package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/unit"
)

// bench is the arrays and the threads. Only one goroutine uses it.
type bench struct {
	config  *config
	place   place
	regions [arrays]*memory.Region
	a, b, c []float64
	workers []worker
	done    sync.WaitGroup // of the pass that runs
	ended   sync.WaitGroup // of the workers
	tick    time.Duration  // smallest step of the clock
}

// worker is one thread, with its part of the arrays.
type worker struct {
	work     chan func(from, to int)
	from, to int
}

// chunk is how many elements a worker passes at a time: the loops themselves cannot be interrupted by the runtime.
const chunk = 32 << 10

// staggerBytes is how much further into its region each array begins than the one before it, as OFFSET of the original. Regions begin at multiples of 2 MiB.
// Without it the arrays of some sizes are a power of two apart: the same elements of two arrays then compete for one way of the first-level
// cache of AMD's processors, which predict it from a hash of the address, and copy lost 15 to 35 %. Whole pages, because an offset within a
// page would let loads wait for stores with the same low 12 bits on Intel's.
const staggerBytes = 11 * 4 * unit.KiB

// newBench starts the threads, which then touch their own parts first, so that these are on their memory nodes.
func newBench(ctx context.Context, c *config) (*bench, error) {
	at, err := newPlace()
	if err != nil {
		return nil, err
	}
	if most := min(len(at.cpus), runtime.GOMAXPROCS(0)); c.threads == 0 {
		c.threads = most
	} else if c.threads > most {
		return nil, &diag.Error{Code: "too-few-cpus", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("%d threads are wanted and the agent may use %d CPUs", c.threads, most), Hint: "use fewer threads, or more vCPUs"}
	}
	at.cpus = share(at.cpus, c.ordinal, c.threads)
	if c.arrayBytes == 0 {
		c.arrayBytes = max(cacheTimes*at.cache, 80*unit.MiB)
		if at.cache == 0 {
			c.arrayBytes = arrayElsewhere
		}
	}
	if err := memory.Check(arrays*c.arrayBytes, "give the VM more memory, or set array: the result is then STREAM-like"); err != nil {
		return nil, err
	}
	b := &bench{config: c, place: at, tick: clockTick()}
	for i := range b.regions {
		if b.regions[i], err = memory.Map(c.arrayBytes+int64(i)*staggerBytes, c.hugePages); err != nil {
			_ = b.close()
			return nil, err
		}
	}
	b.a, b.b, b.c = b.regions[0].Floats(), b.regions[1].Floats()[staggerBytes/8:], b.regions[2].Floats()[2*staggerBytes/8:]
	if err := b.start(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.reset()
	return b, ctx.Err()
}

// share puts the CPUs of a VM's threads first. VMs that are processes of one machine see the same CPUs: if each began with the first one,
// all of them would measure a part of that CPU while others are idle.
func share(cpus []int, ordinal, threads int) []int {
	first := ordinal * threads % len(cpus)
	return slices.Concat(cpus[first:], cpus[:first])
}

// start starts the threads and waits until each is on its CPU.
func (b *bench) start() error {
	pinned := make(chan error, b.config.threads)
	blocks := len(b.a) / 8
	for t := range b.config.threads {
		w := worker{work: make(chan func(int, int)), from: t * blocks / b.config.threads * 8, to: (t + 1) * blocks / b.config.threads * 8}
		b.workers = append(b.workers, w)
		b.ended.Add(1)
		go func() {
			defer b.ended.Done()
			pinned <- memory.Pin(b.place.cpus[t])
			for f := range w.work {
				for from := w.from; from < w.to; from += chunk {
					f(from, min(w.to, from+chunk))
				}
				b.done.Done()
			}
		}()
	}
	var all error
	for range b.workers {
		all = errors.Join(all, <-pinned)
	}
	return all
}

// each runs f on all parts, and returns when it began and how long it took.
func (b *bench) each(f func(from, to int)) (time.Time, time.Duration) {
	b.done.Add(len(b.workers))
	began := time.Now()
	for i := range b.workers {
		b.workers[i].work <- f
	}
	b.done.Wait()
	return began, time.Since(began)
}

// reset gives the arrays their start values.
func (b *bench) reset() {
	b.each(func(from, to int) {
		x, y, z := b.a[from:to], b.b[from:to], b.c[from:to]
		for i := range x {
			x[i], y[i], z[i] = startA, startB, startC
		}
	})
}

// pass runs one kernel.
func (b *bench) pass(kernel int) (time.Time, time.Duration) {
	f := passes[kernel]
	return b.each(func(from, to int) { f(b.a[from:to], b.b[from:to], b.c[from:to]) })
}

// check compares all elements with what the repetitions must have left.
func (b *bench) check(repetitions int) error {
	wantA, wantB, wantC := expected(repetitions)
	var mu sync.Mutex
	var mean [arrays]float64
	b.each(func(from, to int) {
		part := [arrays]float64{deviation(b.a[from:to], wantA), deviation(b.b[from:to], wantB), deviation(b.c[from:to], wantC)}
		mu.Lock()
		defer mu.Unlock()
		for i := range mean {
			mean[i] += part[i] / float64(len(b.a))
		}
	})
	return judge(mean, repetitions)
}

// bytes is what one pass of a kernel counts for.
func (b *bench) bytes(kernel int) int64 { return kernels[kernel].bytes * int64(len(b.a)) }

// notStream is the code of notes on rules of STREAM that a load does not meet and no rule of the audit judges.
const notStream interval.NoteCode = "stream-like"

// broken lists the rules of STREAM that the load does not meet.
func (b *bench) broken() (list []interval.EngineNote) {
	switch {
	case b.config.scaled:
		list = append(list, interval.EngineNote{Code: notStream, Text: "the arrays are smaller in a rehearsal"})
	case b.place.cache == 0:
		list = append(list, interval.EngineNote{Code: notStream, Text: "the size of the last-level cache is not known"})
	}
	if size := int64(len(b.a)) * 8; size < cacheTimes*b.place.cache {
		list = append(list, interval.EngineNote{Code: interval.NoteInCaches, Text: fmt.Sprintf("arrays of %s are less than %d times the last-level cache of %s",
			unit.FormatBytes(size), cacheTimes, unit.FormatBytes(b.place.cache))})
	}
	return list
}

// close ends the threads and gives the memory back.
func (b *bench) close() error {
	for i := range b.workers {
		close(b.workers[i].work)
	}
	b.workers = nil
	b.ended.Wait()
	var all error
	for _, r := range b.regions {
		all = errors.Join(all, r.Close())
	}
	return all
}

// clockTick is the smallest step that the clock was seen to take.
func clockTick() time.Duration {
	least := time.Hour
	for range 100 {
		from := time.Now()
		step := time.Since(from)
		for step == 0 {
			step = time.Since(from)
		}
		least = min(least, step)
	}
	return least
}
