// Package fiolog writes fio's logs while a load runs: bandwidth, operations, latencies and latency histograms, with the
// names and columns of fio 3.33. docs/formats/logs.md describes them.
//
//	thread of the load ──Completed──▶ Recorder: a block of operations ──▶ Set: one goroutine ──▶ lines ──▶ files
//
// The thread of the load only copies 48 bytes an operation. Memory is bounded: when the files take less than the load
// gives, the load waits and the wait is counted, because a log that leaves operations out would be a lie. A log that
// cannot be written any more is given up with an error, and the load goes on.
package fiolog

import (
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// Clone is one clone of a job and the logs it writes.
type Clone struct {
	Name   string // of the job
	Number int    // over all jobs, from 1, as in file names
	Logs   fiojob.Logs
	// Directions are those of the job: a window in which one of them did nothing counts as 0.
	Directions [interval.DirectionCount]bool
	// NoLatency, NoCompletion and NoSubmission leave one of the latency logs out.
	NoLatency, NoCompletion, NoSubmission bool
}

// Options say where logs go.
type Options struct {
	// Path makes a name of a log a path; nil leaves it.
	Path func(name string) string
	// ZeroUnixNanos returns the wall time of zero on the axis of the load, once the load has begun.
	ZeroUnixNanos func() int64
	// Fault receives the error that ends a log, once for each file, while the load goes on; may be nil.
	Fault func(err error)
}

const (
	// bufferBytesMax bounds the text that waits to be written, of all files together.
	bufferBytesMax = 8 << 20
)

var (
	// flushEvery is how old a line may become before it is in its file.
	flushEvery = 200 * time.Millisecond
	// waitMax is how long a load waits for a file that accepts no writes before it gives up the logs.
	waitMax = 10 * time.Second
)

// Set is all logs of a run.
type Set struct {
	options   Options
	files     []*file
	recorders []*Recorder // nil where a clone writes none
	work      chan *Recorder
	over      chan struct{}
	done      chan struct{}

	free freeBlocks
}

// New creates the files of all clones' logs, before anything is loaded. It starts the writer, which Close ends.
func New(clones []Clone, o Options) (*Set, error) {
	s := &Set{options: o, over: make(chan struct{}), done: make(chan struct{})}
	count := 0
	for i := range clones {
		if clones[i].Logs.Any() {
			count++
		}
	}
	s.free.init(count)
	s.work = make(chan *Recorder, count)
	for i := range clones {
		var r *Recorder
		if clones[i].Logs.Any() {
			var err error
			if r, err = s.newRecorder(&clones[i]); err != nil {
				return nil, errors.Join(err, s.closeFiles())
			}
		}
		s.recorders = append(s.recorders, r)
	}
	for _, f := range s.files {
		f.flushAt = min(max(bufferBytesMax/len(s.files), 4<<10), 256<<10)
	}
	go s.write()
	return s, nil
}

// Recorder returns that of a clone, nil where it writes no log.
func (s *Set) Recorder(clone int) *Recorder { return s.recorders[clone] }

// open returns the file of that name, which clones without logs of their own share.
func (s *Set) open(name string, shared bool) (*file, error) {
	if s.options.Path != nil {
		name = s.options.Path(name)
	}
	for _, f := range s.files {
		if f.path == name {
			return f, nil
		}
	}
	f, err := openFile(name, shared)
	if err == nil {
		s.files = append(s.files, f)
	}
	return f, err
}

// write turns blocks into lines until Close.
func (s *Set) write() {
	defer close(s.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-s.work:
			r.work(false)
		case <-tick.C:
			s.writeAll()
		case <-s.over:
			s.writeAll()
			return
		}
	}
}

func (s *Set) writeAll() {
	for _, r := range s.recorders {
		if r != nil {
			r.work(true)
		}
	}
	for _, f := range s.files {
		s.flush(f)
	}
}

// flush writes what waits for a file; the first error ends that log.
func (s *Set) flush(f *file) {
	if err := f.flush(); err != nil && s.options.Fault != nil {
		s.options.Fault(err)
	}
}

// errStuck says that the writer did not come to an end.
var errStuck = errors.New("file system accepts no writes")

// Close writes what is left and returns what went wrong with any log. All recorders must have ended.
func (s *Set) Close() error {
	close(s.over)
	timer := time.NewTimer(3 * waitMax)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		return fmt.Errorf("write logs: %w", errStuck) // its goroutine is left with the system call that hangs
	}
	var errs []error
	for _, r := range s.recorders {
		if r != nil && r.lost > 0 {
			errs = append(errs, fmt.Errorf("logs of job %q: %d operations are missing, because the files accepted no writes for %s",
				r.clone.Name, r.lost, waitMax))
		}
	}
	return errors.Join(append(errs, s.closeFiles())...)
}

func (s *Set) closeFiles() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}
