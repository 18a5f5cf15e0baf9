// Package exporter serves what sources counted as Prometheus metrics, for people's own Prometheus, and pushes them to a Pushgateway.
//
//	collect.Collector ──at a scrape──▶ latest reading ──▶ registry ──▶ /metrics, Once, Push
//
// Samples have no times: Prometheus stamps them when it scrapes. bragg_source_age_seconds says how old they were.
package exporter

import (
	"context"
	"errors"
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

// Exporter holds the latest reading of each source. Its methods may be called from several goroutines.
type Exporter struct {
	registry *prometheus.Registry
	sources  []*latest
	// Report takes each failure of a source that answered before, and parts that cannot be read; may be nil.
	Report func(source string, err error)
}

// latest is one source and its latest reading.
type latest struct {
	Source

	mu        sync.Mutex
	collector collect.Collector
	at        time.Time // of the latest try
	samples   []collect.Sample
	duration  time.Duration
	age       time.Duration // of the newest value; negative if unknown
	err       error
	told      string // the failure that was reported last
}

// freshFor is the part of its interval for which a reading is served again: two servers that scrape must not halve the intervals.
const freshFor = 0.5

// readTimeout bounds one reading.
const readTimeout = 30 * time.Second

// New returns an exporter of these sources, whose intervals are set.
func New(sources []Source) *Exporter {
	e := &Exporter{registry: prometheus.NewRegistry()}
	for _, s := range sources {
		e.sources = append(e.sources, &latest{Source: s})
	}
	e.registry.MustRegister(registered{e}) // an unchecked collector is never refused
	return e
}

// Gatherer returns the metrics as of the latest Read.
func (e *Exporter) Gatherer() prometheus.Gatherer { return e.registry }

// Read reads all sources whose reading is not fresh, side by side. A source that cannot be read has bragg_source_up 0.
func (e *Exporter) Read(ctx context.Context) error {
	var work sync.WaitGroup
	errs := make([]error, len(e.sources))
	for i, s := range e.sources {
		work.Go(func() { errs[i] = s.read(ctx, e.Report) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// Close ends all sessions.
func (e *Exporter) Close() error {
	var errs []error
	for _, s := range e.sources {
		s.mu.Lock()
		if s.collector != nil {
			errs = append(errs, s.collector.Close())
			s.collector = nil
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

func (l *latest) read(ctx context.Context, report func(string, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := time.Now()
	if !l.at.IsZero() && began.Sub(l.at) < time.Duration(freshFor*float64(l.Interval)) {
		return l.err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reading, err := l.collect(ctx)
	l.at, l.duration, l.err, l.samples = began, time.Since(began), err, newest(reading.Samples)
	l.age = -1
	if age, known := reading.Age(time.Now()); known {
		l.age = age
	}
	for _, missing := range reading.Missing {
		err = errors.Join(err, errors.New(missing))
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if report != nil && text != l.told && text != "" {
		report(l.Name, err)
	}
	l.told = text
	return l.err
}

func (l *latest) collect(ctx context.Context) (collect.Reading, error) {
	if l.collector == nil {
		c, err := l.Open(ctx)
		if err != nil {
			return collect.Reading{}, err
		}
		l.collector = c
	}
	return l.collector.Collect(ctx)
}

// newest keeps the last value of each series.
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
	return out
}

// registered makes metrics of the latest readings. It is unchecked: names and labels are those of the readings.
type registered struct{ exporter *Exporter }

// Describe implements prometheus.Collector.
func (registered) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r registered) Collect(out chan<- prometheus.Metric) {
	for _, s := range r.exporter.sources {
		s.mu.Lock()
		samples := slices.Clone(s.samples)
		own := map[string]string{}
		if !s.at.IsZero() {
			up := 0.0
			if s.err == nil {
				up = 1
			}
			samples = append(samples, collect.Sample{Name: collect.Up, Labels: own, Value: up},
				collect.Sample{Name: collect.Duration, Labels: own, Value: s.duration.Seconds()})
			if s.age >= 0 {
				samples = append(samples, collect.Sample{Name: collect.Age, Labels: own, Value: s.age.Seconds()})
			}
		}
		name := s.Name
		s.mu.Unlock()
		for _, one := range samples {
			if m, ok := metricOf(one, name); ok {
				out <- m
			}
		}
	}
}

// metricOf is a sample as a metric, with the label source.
func metricOf(s collect.Sample, source string) (prometheus.Metric, bool) {
	described, ok := collect.Describe(s.Name)
	if !ok {
		return nil, false
	}
	labels := map[string]string{collect.LabelSource: source}
	for name, value := range s.Labels {
		if value != "" {
			labels[name] = strings.ToValidUTF8(value, "\uFFFD")
		}
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
