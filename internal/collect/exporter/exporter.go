// Package exporter serves what sources counted as Prometheus metrics, for people's own Prometheus, and pushes them to a Pushgateway.
//
//	collect.Collector ──at a scrape──▶ reading ──▶ Snapshot ──▶ /metrics, Write, Push
//
// Samples have no times: Prometheus stamps them when it scrapes. bragg_source_age_seconds says how old they were.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
)

// Source is one source to serve.
type Source struct {
	target.Source
	Open func(ctx context.Context) (collect.Collector, error)
}

// Exporter reads sources for scrapes. Its methods may be called from several goroutines.
type Exporter struct {
	sources []*reader
	// Report takes each failure of a source that answered before, and parts that cannot be read; may be nil.
	Report func(source string, err error)
}

// freshFor is the part of its interval for which a reading is served again: two servers that scrape must not halve the intervals.
const freshFor = 0.5

// readTimeout bounds one reading.
const readTimeout = 30 * time.Second

// New returns an exporter of these sources, whose intervals are set.
func New(sources []Source) *Exporter {
	e := &Exporter{}
	for _, s := range sources {
		e.sources = append(e.sources, &reader{Source: s})
	}
	return e
}

// Read reads all sources whose reading is not fresh, side by side. A source that does not answer, or not before ctx ends, has bragg_source_up 0
// and no other metrics.
func (e *Exporter) Read(ctx context.Context) (Snapshot, error) {
	var work sync.WaitGroup
	all := make(Snapshot, len(e.sources))
	for i, s := range e.sources {
		work.Go(func() { all[i] = s.read(ctx, e.Report) })
	}
	work.Wait()
	var errs []error
	for _, one := range all {
		errs = append(errs, one.err)
	}
	return all, errors.Join(errs...)
}

// Close ends readings and sessions.
func (e *Exporter) Close() error {
	var errs []error
	for _, s := range e.sources {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// state is the outcome of one reading of a source.
type state struct {
	name     string
	at       time.Time // of its begin
	samples  []collect.Sample
	duration time.Duration
	age      time.Duration // of the newest value; negative if unknown
	err      error
}

// reader reads one source. Scrapes that come while it is being read share that reading, which goes on if one of them gives up: another scrape
// waits for it, and a slow source would otherwise never be read at all.
type reader struct {
	Source

	mu      sync.Mutex
	last    state
	current *reading // nil if none is under way
	told    string   // the failure that was reported last
	work    sync.WaitGroup

	collector collect.Collector // of the reading under way
}

type reading struct {
	done chan struct{}
	stop context.CancelFunc
}

func (r *reader) read(ctx context.Context, report func(string, error)) state {
	r.mu.Lock()
	if !r.last.at.IsZero() && time.Since(r.last.at) < time.Duration(freshFor*float64(r.Interval)) {
		defer r.mu.Unlock()
		return r.last
	}
	began := time.Now()
	current := r.current
	if current == nil {
		within, stop := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		current = &reading{make(chan struct{}), stop}
		r.current = current
		r.work.Go(func() { r.run(within, current, report) })
	}
	r.mu.Unlock()
	select {
	case <-current.done:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.last
	case <-ctx.Done():
		return state{name: r.Name, at: began, age: -1, duration: time.Since(began), err: fmt.Errorf("source %q: no answer within the time of the scrape", r.Name)}
	}
}

// run reads the source once.
func (r *reader) run(ctx context.Context, current *reading, report func(string, error)) {
	defer current.stop()
	now := state{name: r.Name, at: time.Now(), age: -1}
	answer, err := r.collect(ctx)
	now.duration, now.err, now.samples = time.Since(now.at), err, newest(answer.Samples)
	if age, known := answer.Age(time.Now()); known {
		now.age = age
	}
	for _, missing := range answer.Missing {
		err = errors.Join(err, errors.New(missing))
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	fresh := text != "" && text != r.told
	r.told, r.last, r.current = text, now, nil
	r.mu.Unlock()
	if fresh && report != nil {
		report(r.Name, err)
	}
	close(current.done)
}

func (r *reader) collect(ctx context.Context) (collect.Reading, error) {
	if r.collector == nil {
		c, err := r.Open(ctx)
		if err != nil {
			return collect.Reading{}, err
		}
		r.collector = c
	}
	return r.collector.Collect(ctx)
}

func (r *reader) close() error {
	r.mu.Lock()
	if r.current != nil {
		r.current.stop()
	}
	r.mu.Unlock()
	r.work.Wait()
	if r.collector == nil {
		return nil
	}
	err := r.collector.Close()
	r.collector = nil
	return err
}

// newest keeps the last value of each series. A latency of an interval before that of the operations is not kept: since then there were too few
// operations to have one.
func newest(samples []collect.Sample) []collect.Sample {
	at := map[string]int{}
	var out []collect.Sample
	for _, s := range samples {
		key := s.Key()
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(out)
			out = append(out, s)
		case s.At.After(out[i].At):
			out[i] = s
		}
	}
	return slices.DeleteFunc(slices.Clone(out), func(s collect.Sample) bool {
		if s.Name != collect.Latency {
			return false
		}
		i, counted := at[collect.Sample{Name: collect.OperationsRate, Labels: s.Labels}.Key()]
		return counted && s.At.Before(out[i].At)
	})
}

// Snapshot has the outcome of one reading of each source.
type Snapshot []state

// Gatherer returns the metrics of the snapshot.
func (s Snapshot) Gatherer() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(unchecked{s}) // an unchecked collector is never refused
	return registry
}

// unchecked makes metrics of a snapshot. Their names and labels are those of the readings.
type unchecked struct{ Snapshot }

// Describe implements prometheus.Collector.
func (unchecked) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. A registry refuses all metrics if two are the same, as names that are not UTF-8 may become.
func (u unchecked) Collect(out chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, s := range u.Snapshot {
		for _, one := range s.all() {
			labels := labelsOf(one, s.name)
			key := collect.Sample{Name: one.Name, Labels: labels}.Key()
			if m, ok := metricOf(one, labels); ok && !seen[key] {
				seen[key] = true
				out <- m
			}
		}
	}
}

// all has the samples of a reading, and those about the reading itself.
func (s state) all() []collect.Sample {
	up := 0.0
	if s.err == nil {
		up = 1
	}
	all := append(slices.Clone(s.samples), collect.Sample{Name: collect.Up, Value: up}, collect.Sample{Name: collect.Duration, Value: s.duration.Seconds()})
	if s.age >= 0 {
		all = append(all, collect.Sample{Name: collect.Age, Value: s.age.Seconds()})
	}
	return all
}

// labelsOf has the labels of a sample that are set, and the label source.
func labelsOf(s collect.Sample, source string) map[string]string {
	labels := map[string]string{}
	for name, value := range s.Labels {
		if value != "" {
			labels[name] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	labels[collect.LabelSource] = source
	return labels
}

// metricOf is a sample as a metric.
func metricOf(s collect.Sample, labels map[string]string) (prometheus.Metric, bool) {
	described, ok := collect.Describe(s.Name)
	if !ok {
		return nil, false
	}
	names := slices.Sorted(maps.Keys(labels))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = labels[name]
	}
	kind := prometheus.GaugeValue
	if described.Counter {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(s.Name, described.Help, names, nil), kind, s.Value, values...)
	return m, err == nil
}
