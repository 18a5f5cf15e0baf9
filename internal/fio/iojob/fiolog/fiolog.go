// Package fiolog writes fio's logs while a load runs: bandwidth, operations, latencies and latency histograms, with the
// names and columns of fio 3.33. docs/formats/logs.md describes them.
//
//	thread of the load ──Completed──▶ Recorder: a block of operations ──▶ Set: one goroutine ──▶ lines ──▶ files
//
// The thread of the load only copies 48 bytes per operation. Memory is bounded: if the files are slower than the load, the
// load waits and the wait is counted, because a log without some of the operations would be wrong. A log that can no longer
// be written is closed with an error, and the load continues.
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
	// Directions are the directions of the job: a window without operations of one of them counts as 0.
	Directions [interval.DirectionCount]bool
	// NoLatency, NoCompletion and NoSubmission disable one of the latency logs.
	NoLatency, NoCompletion, NoSubmission bool
}

// Options define where logs are written.
type Options struct {
	// Path turns the name of a log into a path; nil uses the name.
	Path func(name string) string
	// ZeroUnixNanos returns the wall time of zero on the axis of the load, once the load has begun.
	ZeroUnixNanos func() int64
	// Fault receives the error that ends a log, once per file, while the load continues; may be nil.
	Fault func(err error)
}

const (
	// bufferBytesMax bounds the buffered text of all files together.
	bufferBytesMax = 8 << 20
)

var (
	// flushEvery is the maximum age of a line before it is written to its file.
	flushEvery = 200 * time.Millisecond
	// waitMax is how long a load waits for a file that accepts no writes before the logs are abandoned.
	waitMax = 10 * time.Second
)

// Set is all logs of a run.
type Set struct {
	options   Options
	files     []*file
	recorders []*Recorder // nil for clones without logs
	work      chan *Recorder
	over      chan struct{}
	done      chan struct{}

	free freeBlocks
}

// New creates the files of all clones' logs, before the load starts. It starts the writer, which Close ends.
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

// Recorder returns the recorder of a clone, nil if it writes no log.
func (s *Set) Recorder(clone int) *Recorder { return s.recorders[clone] }

// open returns the file with that name, which clones may share.
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

// write converts blocks into lines until Close.
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

// flush writes the buffered text of a file; the first error ends that log.
func (s *Set) flush(f *file) {
	if err := f.flush(); err != nil && s.options.Fault != nil {
		s.options.Fault(err)
	}
}

// errStuck means that the writer did not finish.
var errStuck = errors.New("file system accepts no writes")

// Close writes the remaining lines and returns the errors of all logs. All recorders must have ended.
func (s *Set) Close() error {
	close(s.over)
	timer := time.NewTimer(3 * waitMax)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		return fmt.Errorf("write logs: %w", errStuck) // its goroutine stays in the system call that hangs
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
