package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// Follower reads one source during a run and records what it counted. A source that does not answer costs the run only its samples.
type Follower struct {
	Source   target.Source
	Interval time.Duration
	Open     func(ctx context.Context) (Collector, error)
	Zero     time.Time // of the run's axis
	Mapping  *Mapping
	// Sink takes samples, which it owns. Event takes a failure and the recovery from it.
	Sink  func([]result.Sample)
	Event func(interval.Event)

	collector Collector
	fails     int // since the last reading that succeeded
	failedAt  int64
	next      time.Time
	ending    bool                // the last reading is under way
	readAt    time.Time           // the start of the last reading
	missing   map[string]bool     // parts that could not be read, by their texts up to the reason
	last      map[string]recorded // the newest sample of each series, for sources that give times; a sample is recorded once
	behind    time.Duration       // how far the clock of the source is behind this one
	clocked   bool                // it is known
}

// recorded is when a sample was taken: by the clock of the source, and on the axis of the run.
type recorded struct {
	source time.Time
	at     int64
}

const (
	readTimeoutMax = time.Minute // of one reading
	retryAfterMax  = time.Minute
	// clockErrorMax is how far the clock of a source may be off before times of samples are corrected: Date headers have whole seconds.
	clockErrorMax  = 1500 * time.Millisecond
	seriesMax      = 200_000 // of one source
	readTimeoutMin = 5 * time.Second
	lastTimeout    = 3 * time.Second // of the last reading, for which a run that has ended waits
)

// Run reads until ctx ends, once at its start and then every interval. After a failure it waits twice as long each time, up to a minute.
func (f *Follower) Run(ctx context.Context) {
	f.last, f.missing = map[string]recorded{}, map[string]bool{}
	wait.NowAndEvery(ctx, f.Interval, func() {
		if now := time.Now(); !now.Before(f.next) {
			f.read(ctx)
		}
	})
	// What was counted since the last reading belongs to the run too.
	if f.fails == 0 && time.Since(f.readAt) >= f.Interval/10 {
		f.ending = true
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
		f.read(last)
		cancel()
	}
	if f.collector != nil {
		_ = f.collector.Close()
	}
}

func (f *Follower) read(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, max(min(2*f.Interval, readTimeoutMax), readTimeoutMin))
	defer cancel()
	began := time.Now()
	f.readAt = began
	reading, err := f.collect(within)
	took := time.Since(began)
	if err != nil && (ctx.Err() != nil || f.ending) {
		return // the run ended in mid-reading: that is not a failure of the source
	}
	at := f.axis(began)
	own := map[string]string{LabelSource: f.Source.Name}
	up := 1.0
	if err != nil {
		up = 0
	}
	samples := []result.Sample{
		{AtNanos: at, Name: Up, Labels: own, Value: up}, {AtNanos: at, Name: Duration, Labels: own, Value: took.Seconds()},
	}
	if err != nil {
		f.failed(err, at)
		f.Sink(samples)
		return
	}
	f.answered(at)
	f.incomplete(reading.Missing, at)
	read, newest := f.samples(reading, began, took)
	if newest > 0 {
		samples = append(samples, result.Sample{AtNanos: at, Name: Age, Labels: own, Value: max(0, float64(f.axis(time.Now())-newest)/1e9)})
	}
	f.Sink(append(samples, read...))
}

// collect opens the source if it is not open.
func (f *Follower) collect(ctx context.Context) (Reading, error) {
	if f.collector == nil {
		c, err := f.Open(ctx)
		if err != nil {
			return Reading{}, err
		}
		f.collector = c
	}
	return f.collector.Collect(ctx)
}

// failed reports the first failure of a series, and each with a new reason.
func (f *Follower) failed(err error, at int64) {
	if f.fails++; f.fails == 1 {
		f.failedAt = at
		f.Event(interval.Event{AtNanos: at, Kind: interval.EventSourceSilent, Subject: f.Source.Name, Error: diag.Sentence(err),
			Message: fmt.Sprintf("source %s (%s) cannot be read", f.Source.Name, f.Source.Kind)})
	}
	pause := f.Interval << min(f.fails-1, 6)
	f.next = time.Now().Add(min(pause, max(retryAfterMax, f.Interval)) - f.Interval/2) // a tick comes a little early or late
}

func (f *Follower) answered(at int64) {
	if f.fails > 0 {
		f.Event(interval.Event{AtNanos: at, Kind: interval.EventSourceBack, Subject: f.Source.Name, SpanNanos: at - f.failedAt,
			Message: fmt.Sprintf("source %s answers again", f.Source.Name)})
	}
	f.fails, f.next = 0, time.Time{}
}

// incomplete logs each part of a source that cannot be read, once.
func (f *Follower) incomplete(missing []string, at int64) {
	for _, text := range missing {
		if part, _, _ := strings.Cut(text, ":"); !f.missing[part] {
			f.missing[part] = true
			f.Event(interval.Event{AtNanos: at, Kind: interval.EventLog, Subject: "source " + f.Source.Name, Message: "cannot read " + text})
		}
	}
}

// samples converts a reading, without samples that an earlier reading had. newest is the time of its newest sample, 0 if the source gives
// no times.
func (f *Follower) samples(r Reading, began time.Time, took time.Duration) (out []result.Sample, newest int64) {
	if !r.Clock.IsZero() {
		// The source's clock was read somewhere between request and answer.
		f.compare(began.Add(took/2).Sub(r.Clock), took/2)
	}
	offset := f.behind
	if offset.Abs() < clockErrorMax {
		offset = 0
	}
	now := f.axis(began.Add(took))
	slices.SortStableFunc(r.Samples, func(a, b Sample) int { return a.At.Compare(b.At) })
	for _, s := range r.Samples {
		at := f.axis(began)
		if !s.At.IsZero() {
			at = min(f.axis(s.At.Add(offset)), now)
			newest = max(newest, at)
			key := s.Key()
			last, known := f.last[key]
			if known && s.At.After(last.source) && last.at-at < int64(clockErrorMax) {
				at = max(at, last.at+int64(time.Millisecond)) // in order, although the correction became smaller
			}
			if at < 0 || known && (at <= last.at || s.At.Equal(last.source)) || !known && len(f.last) >= seriesMax {
				continue
			}
			f.last[key] = recorded{s.At, at}
		}
		out = append(out, result.Sample{AtNanos: at, Name: s.Name, Labels: f.Mapping.Apply(f.Source, s.Labels), Value: s.Value})
	}
	return out, newest
}

// compare takes a difference of clocks, which may be off by so much. That to a clock of whole seconds is too large by up to a second, so the smallest one
// counts, until the source's clock is set back.
func (f *Follower) compare(behind, within time.Duration) {
	if step := behind - f.behind; !f.clocked || step < 0 || step >= clockErrorMax+within {
		f.behind, f.clocked = behind, true
	}
}

func (f *Follower) axis(t time.Time) int64 { return t.Sub(f.Zero).Nanoseconds() }
