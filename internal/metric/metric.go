// Package metric answers PromQL for one run: an embedded Prometheus TSDB with native histograms, filled from the
// intervals, events and scraped samples of the run. It is a cache beside the bundle, outside its seal: it can be
// deleted and rebuilt from the record at any time, and no number of a report other than those of queries comes from it.
//
//	intervals, samples, events ──▶ Store.Append… (live) or Rebuild (from a bundle) ──▶ Store.Range, Store.Instant
//	Scraper: exporters of VMs ──▶ samples, for the bundle and the Store
//
// It is the only importer of the Prometheus server libraries. Of those it takes tsdb, promql and the text parser. The
// scraper is our own: Prometheus' stamps wall time and writes to a store only, whereas samples here carry the run's
// axis and belong into the bundle first.
//
// Time: a bundle counts nanoseconds from the start of the run, Prometheus milliseconds of wall time. The store adds the
// wall time of zero from the manifest on the way in and takes it off again on the way out, so that the axis of a chart
// is the same whichever source it draws. docs/formats/metrics.md lists names and labels.
package metric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Dir is the name of the store's folder inside a bundle's folder.
const Dir = "metrics"

const (
	// lookback is how long a value holds when nothing newer was scraped. Prometheus' five minutes would draw a dead VM
	// as living.
	lookback = 30 * time.Second
	// outOfOrder is how late a value may come: agents buffer at least 15 minutes while they are cut off.
	outOfOrder = time.Hour
	// queryTimeout and the two bounds below keep a query of a scenario, which is untrusted, from taking the machine.
	queryTimeout     = 60 * time.Second
	querySamplesMax  = 50_000_000
	queryPointsMax   = 100_000 // per series
	commitEvery      = time.Second
	commitSamplesMax = 20_000
)

// Store is the metric store of one run. Its methods may be called from several goroutines.
type Store struct {
	run, scenario string
	zeroMillis    int64 // wall time of zero on the run's axis

	db     *tsdb.DB
	engine *promql.Engine
	parser parser.Parser

	mu        sync.Mutex
	app       storage.AppenderV2
	pending   int
	committed time.Time
	nodes     map[string]string // VM → node it was last seen on
	loads     map[loadKey]*loadSeries
	scraped   map[string]*scrapedSeries
	names     []byte
	remote    *Remote // is given everything that is appended; may be nil
}

// Forward gives everything that is appended from now on to r, too.
func (s *Store) Forward(r *Remote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remote = r
}

// Open opens the store in dir and creates it when there is none. The manifest says which run the values belong to and
// when its axis begins.
func Open(dir string, m result.Manifest) (*Store, error) {
	quiet := slog.New(slog.DiscardHandler)
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = outOfOrder.Milliseconds()
	options.RetentionDuration = (10 * 365 * 24 * time.Hour).Milliseconds()
	options.WALSegmentSize = 16 << 20
	options.NoLockfile = false
	db, err := tsdb.Open(dir, quiet, nil, options, nil)
	if err != nil {
		return nil, fmt.Errorf("open metric store %q: %w", dir, err)
	}
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: querySamplesMax, Timeout: queryTimeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 1000 },
	})
	return &Store{
		run: m.Run, scenario: m.Scenario.Name, zeroMillis: m.Created.UnixMilli(),
		db: db, engine: engine, parser: p, committed: time.Now(),
		nodes: map[string]string{}, loads: map[loadKey]*loadSeries{}, scraped: map[string]*scrapedSeries{},
	}, nil
}

// Close commits and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.commit()
	if engineErr := s.engine.Close(); err == nil {
		err = engineErr
	}
	if dbErr := s.db.Close(); err == nil {
		err = dbErr
	}
	if err != nil {
		return fmt.Errorf("close metric store: %w", err)
	}
	return nil
}

// Rebuild fills a new store in dir from the record, replacing what is there.
func Rebuild(ctx context.Context, b *result.Bundle, dir string) (*Store, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("rebuild metric store: %w", err)
	}
	s, err := Open(dir, b.Manifest())
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, b); err != nil {
		return nil, errors.Join(fmt.Errorf("rebuild metric store: %w", err), s.Close())
	}
	return s, nil
}

// fill reads events first, because they tell which node a VM was on.
func (s *Store) fill(ctx context.Context, b *result.Bundle) error {
	for e, err := range b.Events() {
		if err != nil {
			return err
		}
		s.AppendEvent(e)
	}
	for iv, err := range b.Intervals() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = s.AppendInterval(&iv)
		}
		if err != nil {
			return err
		}
	}
	var batch []result.Sample
	for sample, err := range b.Samples() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && len(batch) == 1000 {
			err = s.AppendSamples(batch)
			batch = batch[:0]
		}
		if err != nil {
			return err
		}
		batch = append(batch, sample)
	}
	if err := s.AppendSamples(batch); err != nil {
		return err
	}
	return s.Flush()
}

// AppendEvent learns from events which node a VM is on.
func (s *Store) AppendEvent(e interval.Event) {
	if e.Kind != interval.EventPlaced {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[e.Subject] = e.Node
}

// Flush makes everything appended visible to queries.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit()
}

func (s *Store) millis(atNanos int64) int64 { return s.zeroMillis + atNanos/int64(time.Millisecond) }

func (s *Store) appender() storage.AppenderV2 {
	if s.app == nil {
		s.app = s.db.AppenderV2(context.Background())
	}
	return s.app
}

func (s *Store) commit() error {
	s.committed = time.Now()
	if s.app == nil {
		return nil
	}
	app := s.app
	s.app, s.pending = nil, 0
	if err := app.Commit(); err != nil {
		return fmt.Errorf("commit metrics: %w", err)
	}
	return nil
}

func (s *Store) commitIfDue() error {
	if s.pending < commitSamplesMax && time.Since(s.committed) < commitEvery {
		return nil
	}
	return s.commit()
}

// float appends one value. A value that comes too late for the store is dropped: the record has it.
func (s *Store) float(ref storage.SeriesRef, ls labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	s.pending++
	if s.remote != nil {
		s.remote.add(point{labels: ls, millis: t, value: v})
	}
	ref, err := s.appender().Append(ref, ls, 0, t, v, nil, nil, storage.AOptions{})
	return ref, tolerate(err)
}
