package iojob

import (
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/search"
)

// progress is the progress of a clone, which others read while it runs.
type progress struct {
	mu        sync.Mutex
	started   int64 // on the axis of the run
	lead      int64 // from the start of the job until operations are counted
	rampSized bool  // a size ends the ramp
	ended     int64 // 0: still running
	tally     fioreport.Tally
	account   measuring.Account
	live      liveTotals
	logWait   time.Duration // time spent waiting for the files of its logs
	engine    string
	depth     search.Depth // of a queue depth search; the zero value without one
	err       error
}

func (p *progress) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// begin records from when the operations of a starting job count, and which engine does them.
func (p *progress) begin(start int64, j *fiojob.Job, engine string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine = engine
	p.lead, p.rampSized = int64(j.StartDelay+j.RampTime), j.RampSize > 0
	p.started = start + p.lead
}

func (p *progress) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// countedFrom returns the time from which its operations count, on the axis of the run.
func (p *progress) countedFrom() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// foundDepth records the state of a queue depth search. Operations before the end of the search do not count.
func (p *progress) foundDepth(run ioengine.Run) {
	d, searches := run.Depth()
	if !searches {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.FoundNanos > 0 && p.depth.FoundNanos == 0 {
		p.tally = fioreport.Tally{}
		p.started = d.FoundNanos
	}
	p.depth = d
}

// foundRamp records the end of a ramp by size. Until then no operation and no time counts; at is the current time.
func (p *progress) foundRamp(run ioengine.Run, at int64) {
	if !p.rampSized {
		return
	}
	from, known := run.CountsFrom()
	if !known {
		from = at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = max(from, p.depth.FoundNanos)
}

func (p *progress) add(iv *interval.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Add(iv, p.started)
	p.live.add(iv)
}

func (p *progress) end(at time.Duration, account measuring.Account, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = int64(at)
	if account.StartNanos > 0 && p.depth.FoundNanos == 0 && !p.rampSized {
		p.started = account.StartNanos + p.lead
	}
	if account.EndNanos > p.started {
		p.ended = account.EndNanos
	}
	p.account, p.err = account, err
}
