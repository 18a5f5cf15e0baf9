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
	cache    cache

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

// cache is the metric store of a run under way. It opens beside the run, because the first I/O should not wait for it;
// what comes meanwhile is kept and added then. A store that fails is given up: the record can rebuild it.
type cache struct {
	mu    sync.Mutex
	store *metric.Store
	early []func(*metric.Store) error
	ended bool
}

func (c *cache) add(to func(*metric.Store) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
	case c.store == nil:
		c.early = append(c.early, to)
	case to(c.store) != nil:
		c.giveUp()
	}
}

// open opens the store. The caller does not call take before it has returned.
func (c *cache) open(dir string, m result.Manifest) {
	store, err := metric.Open(dir, m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.ended, c.early = true, nil
		return
	}
	c.store = store
	for _, to := range c.early {
		if to(store) != nil {
			c.giveUp()
			break
		}
	}
	c.early = nil
}

// giveUp closes the store. The caller holds the lock.
func (c *cache) giveUp() {
	_ = c.store.Close()
	c.store, c.ended = nil, true
}

// take hands over the store with everything in it visible to queries; nil when there is none.
func (c *cache) take() *metric.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	store := c.store
	c.store, c.ended = nil, true
	if store == nil {
		return nil
	}
	if store.Flush() != nil {
		_ = store.Close()
		return nil
	}
	return store
}
