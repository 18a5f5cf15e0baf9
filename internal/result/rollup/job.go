package rollup

import (
	"fmt"
	"io"
	"os"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/frame"
)

// file is a file of the bundle.
type file interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}

func damaged(at int64, err error) error {
	return fmt.Errorf("%w: frame at byte %d: %w", frame.ErrDamaged, at, err)
}

// span are the bytes of one frame.
type span struct{ at, length int64 }

// job is a stretch of the intervals file that becomes one batch, or several if it is large.
type job struct {
	frames []span
	record *header // of the rollups file, nil for none
	body   span
	err    error // ends the file

	out chan *Batch // closed when the job is done
}

// end of the frames.
func (j *job) end() int64 {
	last := j.frames[len(j.frames)-1]
	return last.at + last.length
}

// worker reads jobs, one at a time.
type worker struct {
	source *Source
	cuts   *Cuts
	spare  chan *memory // of batches that are done
}

func (w *worker) memory() (*memory, error) {
	select {
	case m := <-w.spare:
		m.reset()
		return m, nil
	default:
	}
	m, err := newMemory()
	if err == nil {
		m.reset()
	}
	return m, err
}

// run reads a job.
func (w *worker) run(j *job, emit func(*Batch)) error {
	if j.err != nil {
		return j.err
	}
	m, err := w.memory()
	if err != nil {
		return err
	}
	if j.record != nil {
		if ok, err := w.fromRecord(m, j, emit); ok || err != nil {
			return err
		}
		m.reset()
	}
	for _, f := range j.frames {
		text, err := m.text(w.source.Intervals, f.at, f.length)
		if err != nil {
			return err
		}
		_, err = frame.Lines(text, func(text []byte) (bool, error) { return true, m.fold(text, f.at) })
		if err != nil {
			return damaged(f.at, err)
		}
	}
	f := w.folded(m, m.each, 0)
	if err := w.merge(f, emit); err != nil {
		return err
	}
	if err := f.seconds(m); err != nil {
		return err
	}
	emit(&Batch{Each: m.each, Seconds: m.seconds, memory: m})
	return nil
}

// folded are intervals whose first line has a number.
func (w *worker) folded(m *memory, each []interval.Interval, first int) *folded {
	return &folded{each: each, bad: map[int]bool{}, again: func(i int) (interval.Interval, error) {
		l := m.lines[first+i]
		iv, err := m.again.Line(l.text)
		if err != nil {
			err = damaged(l.at, err)
		}
		return iv, err
	}}
}

// merge passes on merged intervals.
func (w *worker) merge(f *folded, emit func(*Batch)) error {
	into, err := w.memory()
	if err != nil {
		return err
	}
	g := merger{cuts: w.cuts, memory: into, out: into.merged}
	pass := func() {
		g.memory.merged = g.out
		emit(&Batch{Merged: g.out, memory: g.memory})
	}
	err = g.merge(f, func() (err error) {
		pass()
		if g.memory, err = w.memory(); err == nil {
			g.out = g.memory.merged
		}
		return err
	})
	if err == nil {
		pass()
	}
	return err
}

// fromRecord reads a record, and reports whether it suffices.
func (w *worker) fromRecord(m *memory, j *job, emit func(*Batch)) (ok bool, err error) {
	text, err := m.text(w.source.Rollups, j.body.at, j.body.length)
	if err != nil {
		return false, nil // the intervals are the record
	}
	_, err = frame.Lines(text, func(text []byte) (bool, error) { return true, m.fold(text, j.body.at) })
	h, lines := j.record, len(m.each)
	if err != nil || min(h.Intervals, h.Merged, h.Seconds) < 0 || h.Merged == 0 ||
		max(h.Intervals, h.Merged, h.Seconds) > lines || lines != h.Intervals+h.Merged+h.Seconds { // large numbers overflow the sum
		return false, nil
	}
	merged, seconds := m.each[h.Intervals:h.Intervals+h.Merged], m.each[h.Intervals+h.Merged:]
	for i := range merged {
		if !w.cuts.whole(&merged[i]) {
			return false, nil
		}
	}
	for i := range seconds {
		s, packed := &seconds[i], seconds[i].Directions[0].Service
		s.Directions[0].Service = m.histogram()
		if s.Directions[0].Service.Unfold(packed) != nil {
			return false, nil
		}
	}
	var held []*Batch // until all are known to be good
	if w.merge(w.folded(m, merged, h.Intervals), func(b *Batch) { held = append(held, b) }) != nil {
		return false, nil
	}
	for _, b := range held {
		emit(b)
	}
	emit(&Batch{Each: m.each[:h.Intervals], Seconds: seconds, memory: m})
	return true, nil
}
