package mlperf

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// trainer runs epochs. Each accelerator has its own readers, which read one batch each and hold a bounded number of them; it takes
// their batches in order, computes for a constant time, and waits for the other accelerators of the VM, and the
// last one of these for the other VMs.
//
//	readers ──batches──▶ accelerator: compute ──▶ barrier ──▶ next step
type trainer struct {
	*training
	data  *dataset
	meter *meter
	out   *record
	axis  program.Axis
	// others are the VMs of the load.
	others *together
	rank   int // of this VM among those that share the data set, else 0
}

// epochsSaidMax bounds the output.
const epochsSaidMax = 200

// forever is a number of steps that no epoch has.
const forever = math.MaxInt

// train runs epochs until all are done or, if the load has a runtime, until that is over.
func (t *trainer) train(ctx context.Context, timed bool) error {
	for number := 1; (timed || number <= t.epochs) && ctx.Err() == nil; number++ {
		e, err := t.run(ctx, number, t.accelerators, forever)
		if err != nil {
			return err
		}
		if number <= epochsSaidMax && e.steps > 0 {
			t.out.say("epoch %d: %d steps in %.3f s, AU %s, %.4g samples/s, %.4g MB/s\n", number, e.steps, e.seconds, percent(e.au), e.samples,
				e.samples*t.model.recordBytes/1e6)
		}
	}
	return nil
}

// run is one epoch, or as many steps of it. An epoch that is cancelled is measured up to its last complete step.
func (t *trainer) run(ctx context.Context, number, accelerators, stepsMost int) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full := t.steps(accelerators)
	e := &pass{trainer: t, order: t.data.order(number), before: t.rank * accelerators, steps: min(full, stepsMost), full: full,
		fail: func(err error) { cancel(err) }, barrier: newBarrier(accelerators)}
	t.meter.beginEpoch(accelerators, t.axis.Now())
	var all sync.WaitGroup
	for a := range accelerators {
		batches := make([]chan struct{}, t.model.readThreads)
		for r := range batches {
			batches[r] = make(chan struct{}, t.queue()-1)
			all.Go(func() { e.read(ctx, a, r, batches[r]) })
		}
		all.Go(func() { e.accelerate(ctx, a, batches) })
	}
	all.Wait()
	r := t.meter.endEpoch(ctx.Err() == nil)
	if e.failed != nil || ctx.Err() != nil {
		return r, e.failed
	}
	return r, t.share(ctx, &r)
}

// pass is one epoch.
type pass struct {
	*trainer
	order       []int
	before      int // accelerators of VMs that read earlier samples of the order
	steps, full int
	barrier     *barrier
	once        sync.Once
	failed      error
	fail        func(error)
}

func (p *pass) give(err error) {
	p.once.Do(func() {
		p.failed = err
		p.fail(err)
	})
}

// read reads every batch of an accelerator whose turn is this reader's, and hands it over. While it waits for that, it holds one
// batch beside those in the channel.
func (p *pass) read(ctx context.Context, accelerator, turn int, ready chan<- struct{}) {
	buffer := make([]byte, p.transfer)
	open := &handle{data: p.data, file: -1}
	defer open.close()
	for step := turn; step < p.steps; step += p.model.readThreads {
		first := ((p.before+accelerator)*p.full + step) * p.on.batch
		for sample := first; sample < first+p.on.batch; sample++ {
			if ctx.Err() != nil {
				return
			}
			if err := p.sample(ctx, open, sample, buffer); err != nil {
				if ctx.Err() == nil {
					p.give(err)
				}
				return
			}
		}
		p.meter.ready(accelerator, step, p.axis.Now())
		select {
		case ready <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// handle is the file that a reader has open.
type handle struct {
	data   *dataset
	file   int
	sample int64
	f      *os.File
}

func (h *handle) close() {
	if h.f != nil {
		_ = h.f.Close()
		h.f = nil
	}
}

// at opens a file, unless it is open.
func (h *handle) at(file int) (err error) {
	if h.f != nil && h.file == file {
		return nil
	}
	h.close()
	h.file, h.sample = file, h.data.sampleBytes(file)
	h.f, err = os.Open(h.data.path(file))
	return err
}

// sample reads one sample.
func (p *pass) sample(ctx context.Context, h *handle, number int, buffer []byte) error {
	began := p.axis.Now()
	perFile := p.model.samplesInFile
	if err := h.at(p.order[number/perFile]); err != nil {
		return err
	}
	from := int64(number%perFile) * h.sample
	for at := int64(0); at < h.sample; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := h.f.ReadAt(buffer[:min(int64(len(buffer)), h.sample-at)], from+at)
		if at += int64(n); err != nil && !(err == io.EOF && at == h.sample) {
			return fmt.Errorf("read %d bytes of a sample: %w", h.sample, err)
		}
	}
	if perFile == 1 {
		h.close() // as loaders do, which open a file for each sample
	}
	now := p.axis.Now()
	p.out.add(program.Operation{Kind: opSample, End: now, Latency: now - began, Bytes: uint64(h.sample)})
	return nil
}

// accelerate is the steps of one accelerator.
func (p *pass) accelerate(ctx context.Context, accelerator int, batches []chan struct{}) {
	for step := range p.steps {
		began := p.axis.Now()
		select {
		case <-batches[step%len(batches)]:
		case <-ctx.Done():
			return
		}
		begin := p.axis.Now()
		p.out.waited(begin - began)
		p.meter.begin(accelerator, begin)
		if compute(ctx, p.on.compute); ctx.Err() != nil {
			return
		}
		p.meter.end(accelerator, p.axis.Now())
		if !p.barrier.wait(ctx, func() bool { return p.stepped(ctx) }) {
			return
		}
	}
}

// stepped ends a step of this VM: with the same step of all others.
func (p *pass) stepped(ctx context.Context) bool {
	if _, err := p.others.step(ctx, p.meter.sofar()); err != nil {
		if ctx.Err() == nil {
			p.give(err)
		}
		return false
	}
	p.meter.stepped(p.axis.Now())
	return true
}

// share exchanges the result of an epoch with the other VMs. That of a search becomes the one of all VMs, so that all decide alike.
func (t *trainer) share(ctx context.Context, r *result) error {
	own := *r
	if !t.search {
		own = t.meter.sofar()
	}
	whole, err := t.others.step(ctx, own)
	if err == nil && t.search && t.others != nil {
		*r = whole
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

const (
	// napMax is how long a thread sleeps at most without a look at its context.
	napMax = 10 * time.Millisecond
	// early is how much earlier than due a timer of the runtime ends.
	early = 3 * time.Millisecond
)

// compute lets the time of a computation pass.
func compute(ctx context.Context, d time.Duration) {
	due := time.Now().Add(d)
	if d > napMax {
		_ = wait.For(ctx, d-early)
	}
	for ctx.Err() == nil {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		nap(min(left, napMax))
	}
}

// barrier lets a number of goroutines go on together.
type barrier struct {
	mu       sync.Mutex
	size     int
	arrived  int
	together chan struct{}
}

func newBarrier(size int) *barrier { return &barrier{size: size, together: make(chan struct{})} }

// wait returns when all have called it; the last one calls do before, and if that returns false no goroutine goes on. It returns false if ctx
// ended before.
func (b *barrier) wait(ctx context.Context, do func() bool) bool {
	b.mu.Lock()
	gate := b.together
	if b.arrived++; b.arrived == b.size {
		if !do() {
			b.mu.Unlock()
			return false
		}
		b.arrived, b.together = 0, make(chan struct{})
		close(gate)
	}
	b.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}
