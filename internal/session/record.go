package session

import (
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// recorder takes everything that a run says and gives it to the bundle, to the metric store and to whoever watches. Its
// methods may be called from several goroutines.
type recorder struct {
	zero     time.Time
	manifest result.Manifest
	writer   *result.Writer
	secrets  *secrets
	cache    *cache

	watchMu sync.Mutex
	watch   Watcher // may be nil
}

// now returns the present moment on the run's axis.
func (r *recorder) now() int64 { return time.Since(r.zero).Nanoseconds() }

// Event records e, which carries its time already. What the bundle cannot take is told by its Failed channel.
func (r *recorder) Event(e interval.Event) {
	e.Message, e.Error = r.secrets.text(e.Message), r.secrets.text(e.Error)
	_ = r.writer.Event(e)
	r.cache.add(func(s *metric.Store) error { s.AppendEvent(e); return nil })
	if r.watch != nil {
		r.watchMu.Lock()
		defer r.watchMu.Unlock()
		r.watch.Event(e)
	}
}

// say records a remark of the session itself.
func (r *recorder) say(kind interval.EventKind, subject, text string) {
	r.Event(interval.Event{AtNanos: r.now(), Kind: kind, Subject: subject, Message: text})
}

// Interval records iv. It implements load.Sink.
func (r *recorder) Interval(iv interval.Interval) {
	_ = r.writer.Interval(iv)
	if r.watch != nil {
		r.watchMu.Lock()
		r.watch.Interval(iv)
		r.watchMu.Unlock()
	}
	r.cache.add(func(s *metric.Store) error { return s.AppendInterval(&iv) })
}

// Samples records metric values.
func (r *recorder) Samples(samples []result.Sample) {
	if len(samples) == 0 {
		return
	}
	_ = r.writer.Sample(samples...)
	r.cache.add(func(s *metric.Store) error { return s.AppendSamples(samples) })
}
