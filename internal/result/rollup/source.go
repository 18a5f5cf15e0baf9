package rollup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"runtime"
	"sync"

	"github.com/braggdev/bragg/internal/result/frame"
)

const (
	// jobBytes is how much of the intervals file one job reads, unless a single frame is larger.
	jobBytes = 256 << 10
	// aheadMax is how many jobs may be done before the first of them is needed, for each processor.
	aheadMax = 2
)

// Source is where intervals come from.
type Source struct {
	Intervals file
	Rollups   file // nil for none
}

// Batches reads the whole file on all processors, in order. A batch is valid until the next one is yielded. An error ends it, wrapped
// around frame.ErrCut or frame.ErrDamaged where the file itself is the reason.
func (s *Source) Batches(ctx context.Context, cuts Cuts) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		workers := runtime.GOMAXPROCS(0)
		order, work := make(chan *job, aheadMax*workers), make(chan *job)
		spare := make(chan *memory, 2*workers)
		running.Go(func() {
			defer close(order)
			defer close(work)
			s.jobs(&cuts, func(j *job) bool {
				j.out = make(chan *Batch, 2)
				return send(ctx, order, j) && send(ctx, work, j)
			})
		})
		for range workers {
			w := worker{source: s, cuts: &cuts, spare: spare}
			running.Go(func() {
				for j := range work {
					j.err = w.run(j, func(b *Batch) { send(ctx, j.out, b) })
					close(j.out)
				}
			})
		}
		for j := range order {
			for b := range receive(ctx, j.out) {
				if !yield(b, nil) {
					return
				}
				select {
				case spare <- b.memory:
				default:
				}
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if j.err != nil {
				yield(nil, j.err)
				return
			}
		}
		if err := ctx.Err(); err != nil { // which may have ended the jobs before the file did
			yield(nil, err)
		}
	}
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// receive iterates until a channel is closed or the context is done.
func receive[T any](ctx context.Context, from <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			select {
			case v, ok := <-from:
				if !ok || !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// jobs cuts the file into jobs: the stretches that records cover, and what is between and after them.
func (s *Source) jobs(cuts *Cuts, add func(*job) bool) {
	info, err := s.Intervals.Stat()
	if err != nil {
		add(&job{err: err})
		return
	}
	at, size := int64(0), info.Size()
	if s.Rollups != nil && cuts.fits() {
		for j := range s.records(size) {
			if !add(j) {
				return
			}
			at = j.end()
		}
	}
	for j, err := range plain(s.Intervals, at, size, jobBytes) {
		if err != nil && !errors.Is(err, io.EOF) {
			j = &job{err: err}
		}
		if j != nil && !add(j) {
			return
		}
	}
}

// plain iterates over jobs without a record, each of at least so many bytes, and at the end over the error that ended the file.
func plain(f file, from, size, bytes int64) iter.Seq2[*job, error] {
	return func(yield func(*job, error) bool) {
		frames := frame.Scanner{File: f, Size: size, Offset: from}
		j := &job{}
		for {
			at, length, err := frames.Next()
			if len(j.frames) > 0 && (err != nil || j.end()-j.frames[0].at >= bytes) {
				if !yield(j, nil) {
					return
				}
				j = &job{}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			j.frames = append(j.frames, span{at, length})
		}
	}
}

// records iterates over the records that match the intervals, up to the first that does not. What is wrong with a rollups file never
// matters: the intervals are there.
func (s *Source) records(size int64) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		info, err := s.Rollups.Stat()
		m, err2 := newMemory()
		if err != nil || err2 != nil {
			return
		}
		at := int64(0)
		frames := frame.Scanner{File: s.Rollups, Size: info.Size()}
		for {
			head, length, err := frames.Next()
			if err != nil {
				return
			}
			m.frames = 0
			j := &job{record: &header{}}
			text, err := m.text(s.Rollups, head, length)
			if err != nil || json.Unmarshal(text, j.record) != nil || j.record.From != at {
				return
			}
			if j.body.at, j.body.length, err = frames.Next(); err != nil {
				return
			}
			if j.frames, err = j.record.frames(s.Intervals, at, size); err != nil || !yield(j) {
				return
			}
			at = j.end()
		}
	}
}
