package iojob

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/search"
)

// clone is one clone of a job: what fio runs as one process.
type clone struct {
	job     fiojob.Job // of this clone alone: one clone, its own files and offset
	ordinal int        // of the job among all, from 0
	number  int        // over all jobs, from 0
	index   int        // among the clones of its job
	phase   int        // between two stonewalls
	files   []cloneFile
	made    madeFiles  // by jobs above
	later   bool       // its files are worked out when it begins: a job above writes the log that names them
	log     *iolog.Log // that is replayed; nil: none
	logged  string     // file of the log that is written; "": none
	course  course
	judge   *judge // nil: no steady state is waited for

	mu      sync.Mutex
	started int64 // on the axis of the run
	ended   int64 // 0: still going on
	tally   fioreport.Tally
	account measuring.Account
	live    liveTotals
	logWait time.Duration // for the files of its logs
	engine  string
	depth   search.Depth // of a search; the zero value where there is none
	err     error
}

// cloneFile is one file of a clone.
type cloneFile struct {
	path string
	need int64 // bytes that it must have; 0 takes it as it is
	size int64 // what it has, once it is laid out
	// drawn: its length was drawn from a range, and it is used up to there also where it is longer.
	drawn bool
	// What a log that is replayed does to it; without one the job tells.
	reads, writes bool
	held          *os.File // a block device that this run holds
}

// devices are the clone's files as the engine wants them.
func (c *clone) devices() []load.Device {
	out := make([]load.Device, len(c.files))
	for i, f := range c.files {
		out[i] = load.Device{Name: f.path, Path: f.path, SizeBytes: f.size}
		if f.held != nil {
			// By its descriptor: the name may refer to another device by now.
			out[i].Path, out[i].Held = fmt.Sprintf("/proc/self/fd/%d", f.held.Fd()), true
		}
	}
	return out
}

func (c *clone) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// begin notes when the clone's operations count from, and what does them.
func (c *clone) begin(start int64, engine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine = engine
	c.started = start + int64(c.job.StartDelay+c.job.RampTime)
}

func (c *clone) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// countedFrom returns from when its operations count, on the axis of the run.
func (c *clone) countedFrom() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// foundDepth records the state of a queue depth search. Operations before it found a depth do not count.
func (c *clone) foundDepth(run ioengine.Run) {
	d, searches := run.Depth()
	if !searches {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.FoundNanos > 0 && c.depth.FoundNanos == 0 {
		c.tally = fioreport.Tally{}
		c.started = d.FoundNanos
	}
	c.depth = d
}

// foundRamp takes over when a ramp by size has ended. Until then nothing counts, and no time passes; at is now.
func (c *clone) foundRamp(run ioengine.Run, at int64) {
	if c.job.RampSize == 0 {
		return
	}
	from, known := run.CountsFrom()
	if !known {
		from = at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = max(from, c.depth.FoundNanos)
}

func (c *clone) add(iv *interval.Interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Add(iv, c.started)
	c.live.add(iv)
}

func (c *clone) end(at time.Duration, account measuring.Account, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = int64(at)
	if account.StartNanos > 0 && c.depth.FoundNanos == 0 && c.job.RampSize == 0 {
		c.started = account.StartNanos + int64(c.job.StartDelay+c.job.RampTime)
	}
	if account.EndNanos > c.started {
		c.ended = account.EndNanos
	}
	c.account, c.err = account, err
}
