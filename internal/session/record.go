package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// recorder receives all output of a run and passes it to the bundle, the metric store and the observers. Its methods may
// be called from several goroutines.
type recorder struct {
	zero     time.Time
	manifest result.Manifest
	writer   *result.Writer
	secrets  *secrets
	cache    *cache

	watchMu sync.Mutex
	watch   Watcher // may be nil
}

// now returns the current time on the run's axis.
func (r *recorder) now() int64 { return time.Since(r.zero).Nanoseconds() }

// Event records e, which already carries its time. A write error of the bundle is reported on the bundle's Failed channel.
func (r *recorder) Event(e interval.Event) {
	e = e.WithTexts(r.secrets.text)
	_ = r.writer.Event(e)
	r.cache.add(func(s *metric.Store) error { s.AppendEvent(e); return nil })
	if r.watch != nil {
		r.watchMu.Lock()
		defer r.watchMu.Unlock()
		r.watch.Event(e)
	}
}

// say records a message of the session itself.
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

// remoteEndTime is how long the end of a run waits for the remote store to accept the remaining samples.
const remoteEndTime = 10 * time.Second

// startRemote starts remote writes of samples if the user configured a remote store. A store that is down does not prevent
// the run.
func (x *execution) startRemote() (*metric.Remote, error) {
	o := x.Order.RemoteWrite
	if o.URL == "" {
		return nil, nil
	}
	r, err := metric.StartRemote(o)
	if err != nil {
		return nil, err
	}
	x.record.say(interval.EventLog, "", "samples are written to the store at "+o.Host()+" too")
	return r, nil
}

// endRemote sends the remaining samples and reports those that the remote store lacks.
func (x *execution) endRemote(ctx context.Context) (caveat string) {
	if x.remote == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remoteEndTime)
	defer cancel()
	sent, dropped, why := x.remote.Close(ctx)
	x.remote = nil
	if dropped == 0 {
		return ""
	}
	return fmt.Sprintf("The store at %s lacks %d of %d samples; the bundle has all of them. The newest reason: %v.",
		x.Order.RemoteWrite.Host(), dropped, sent+dropped, why)
}
