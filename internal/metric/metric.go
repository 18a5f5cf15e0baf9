// Package metric answers PromQL for one run: an embedded Prometheus TSDB with native histograms, filled from the intervals,
// events and scraped samples of the run. It is a cache beside the bundle and not covered by its seal: it can be deleted and
// rebuilt from the record at any time. Of the numbers in a report, only results of queries come from it.
//
//	intervals, samples, events ──▶ Store.Append… (live) or Rebuild (from a bundle) ──▶ Store.Range, Store.Instant
//	Scraper: exporters of VMs ──▶ samples, for the bundle and the Store
//
// This package is the only importer of the Prometheus server libraries. It uses tsdb, promql and the text parser. The scraper is
// separate: Prometheus' scraper stamps wall time and writes only to a store, whereas samples here have times on the run's axis
// and go into the bundle first.
//
// Time: a bundle counts nanoseconds from the start of the run, Prometheus milliseconds of wall time. The store adds the wall time
// of zero from the manifest to incoming times and subtracts it from outgoing ones, so that charts of all sources share one axis.
// docs/formats/metrics.md lists names and labels.
package metric

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Dir is the name of the store's folder inside a bundle's folder.
const Dir = "metrics"

const (
	// lookback is how long a value holds if no newer one was scraped. With Prometheus' five minutes, a dead VM would appear to be
	// alive.
	lookback = 30 * time.Second
	// queryTimeout and the two bounds below keep an untrusted query of a scenario from overloading the machine.
	queryTimeout    = 60 * time.Second
	querySamplesMax = 50_000_000
	queryPointsMax  = 100_000 // per series
)

// Store is the metric store of one run. Its methods may be called from several goroutines.
type Store struct {
	run        string
	own        map[string]string          // labels of all series
	engines    map[string]interval.Engine // by workload; they name operations and gauges
	zeroMillis int64                      // wall time of zero on the run's axis

	disk   *disk
	engine *promql.Engine
	parser parser.Parser

	mu      sync.Mutex
	values  []value           // of the current call, for the disk
	nodes   map[string]string // VM → node it was last seen on
	loads   map[loadKey]*loadSeries
	scraped map[string]*scrapedSeries
	names   []byte
	remote  *Remote // receives everything that is appended; may be nil
}

// Forward also sends everything that is appended from now on to r.
func (s *Store) Forward(r *Remote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remote = r
}

// Open opens the store in dir and creates it if there is none. The manifest identifies the run of the values and the start of its
// axis. An existing store contains what Persist wrote.
func Open(dir string, m result.Manifest) (*Store, error) {
	d, err := openDisk(dir)
	if err != nil {
		return nil, err
	}
	return newStore(d, m), nil
}

// Forwarder returns a store that keeps nothing, because of why. It only serves Forward.
func Forwarder(m result.Manifest, why error) *Store { return newStore(brokenDisk(why), m) }

func newStore(d *disk, m result.Manifest) *Store {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: querySamplesMax, Timeout: queryTimeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 1000 },
	})
	return &Store{
		run: m.Run, own: ownLabels(m), engines: m.Engines, zeroMillis: m.Created.UnixMilli(), disk: d, engine: engine, parser: p,
		nodes: map[string]string{}, loads: map[loadKey]*loadSeries{}, scraped: map[string]*scrapedSeries{},
	}
}

// ownNames are the labels of the run, which are on all its series. scenario_id, scenario_name, scenario_display_name and
// cluster_name are X-Ray's.
var ownNames = []string{"run", "scenario", "scenario_id", "scenario_name", "scenario_display_name", "cluster_name"}

func ownLabels(m result.Manifest) map[string]string {
	return map[string]string{
		"run": m.Run, "scenario": m.Scenario.Name, "scenario_id": m.Run, "scenario_name": m.Scenario.Name,
		"scenario_display_name": m.Scenario.DisplayName, "cluster_name": m.Target.Name,
	}
}

// Broken is closed when the store's directory accepts no more writes: the disk is full, or the directory is gone. From then on,
// every call except Forward fails with the error that Err returns. Rebuild restores all data.
func (s *Store) Broken() <-chan struct{} { return s.disk.broken }

// Err returns why the store is broken, or nil.
func (s *Store) Err() error { return s.disk.fault() }

// Persist writes everything that was appended, so that Open finds it. Nothing may be appended afterwards. A store that is closed
// without Persist leaves no usable data.
func (s *Store) Persist() error {
	if err := s.disk.persist(); err != nil {
		return fmt.Errorf("write metric store: %w", err)
	}
	return nil
}

// Close closes the store. After a panic of the library, its files stay open, because its locks cannot be trusted.
func (s *Store) Close() error {
	if err := errors.Join(s.disk.close(), s.engine.Close()); err != nil {
		return fmt.Errorf("close metric store: %w", err)
	}
	return nil
}

// Rebuild fills a new store in dir from the record, replacing any existing one.
func Rebuild(ctx context.Context, b *result.Bundle, dir string) (*Store, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("rebuild metric store: %w", err)
	}
	s, err := Open(dir, b.Manifest())
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, b); err != nil {
		_ = s.Close()
		return nil, errors.Join(fmt.Errorf("rebuild metric store: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// fill reads events first, because they show which node a VM was on. It appends intervals and samples in parallel, each in
// recorded order: the database refuses values older than the newest one by more than outOfOrder.
func (s *Store) fill(ctx context.Context, b *result.Bundle) error {
	for e, err := range b.Events() {
		if err != nil {
			return err
		}
		s.AppendEvent(e)
	}
	next, stop := iter.Pull2(b.Samples())
	defer stop()
	samples := sampleQueue{store: s, next: next}
	for iv, err := range b.Intervals() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = samples.until(ctx, iv.EndNanos())
		}
		if err == nil {
			err = s.AppendInterval(&iv)
		}
		if err != nil {
			return err
		}
	}
	if err := samples.until(ctx, math.MaxInt64); err != nil {
		return err
	}
	return s.Flush()
}

// sampleQueue appends recorded samples step by step.
type sampleQueue struct {
	store *Store
	next  func() (result.Sample, error, bool)
	batch []result.Sample
	ahead result.Sample // read, and not due yet
	read  bool          // ahead holds one
	ended bool
}

const sampleBatchMax = 1000

// until appends the samples recorded up to a given time.
func (q *sampleQueue) until(ctx context.Context, nanos int64) error {
	for !q.ended {
		if !q.read {
			var err error
			var more bool
			if q.ahead, err, more = q.next(); err != nil {
				return err
			}
			q.read, q.ended = more, !more
			continue
		}
		if q.ahead.AtNanos > nanos {
			break
		}
		q.batch, q.read = append(q.batch, q.ahead), false
		if len(q.batch) == sampleBatchMax {
			if err := q.flush(ctx); err != nil {
				return err
			}
		}
	}
	return q.flush(ctx)
}

func (q *sampleQueue) flush(ctx context.Context) error {
	if len(q.batch) == 0 {
		return nil
	}
	err := ctx.Err()
	if err == nil {
		err = q.store.AppendSamples(q.batch)
	}
	q.batch = q.batch[:0]
	return err
}

// AppendEvent updates from events which node a VM is on.
func (s *Store) AppendEvent(e interval.Event) {
	if e.Kind != interval.EventPlaced {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[e.Subject] = e.Node
}

// Flush makes everything appended visible to queries.
func (s *Store) Flush() error { return s.disk.commit() }

func (s *Store) millis(atNanos int64) int64 { return s.zeroMillis + atNanos/int64(time.Millisecond) }

// put adds one number to the values that hand passes on. The caller holds the lock of both.
func (s *Store) put(v value) {
	if s.remote != nil {
		s.remote.add(point{labels: v.labels, millis: v.millis, value: v.number})
	}
	if s.disk.fault() == nil {
		s.values = append(s.values, v)
	}
}

// hand passes the queued values to the disk. A disk that breaks meanwhile may keep a reference to the list, so the list is
// not reused.
func (s *Store) hand() error {
	err := s.disk.append(s.values)
	if err != nil {
		s.values = nil
		return err
	}
	s.values = s.values[:0]
	return nil
}
