package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// completeMark marks a metric store whose blocks have all recorded data. (A store with the mark "complete", of earlier
// programs, needs its write-ahead log too, and is rebuilt.)
const completeMark = "blocks-complete"

// keep closes the store of a finished run and marks it as complete, so that queries need not rebuild it. A store that
// cannot be completed is removed: queries rebuild it from the record, which takes longer and gives the same result.
func keep(store *metric.Store, dir string) {
	err := store.Persist()
	if err = errors.Join(err, store.Close()); err == nil {
		err = durable.WriteFile(filepath.Join(dir, completeMark), nil, 0o600)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
}

// queries answers from the store that was filled while the run went on, and from one that is rebuilt from the record where that one
// is missing or broken.
type queries struct {
	bundle *result.Bundle
	live   *metric.Store // may be nil

	rebuilt *metric.Store
	end     func() error
	err     error // why it could not be rebuilt
}

// Expand implements evaluate.Ranger.
func (q *queries) Expand(expr, group string) (string, error) {
	return metric.Expand(expr, q.bundle.Manifest().Run, group)
}

// Range implements evaluate.Ranger.
func (q *queries) Range(ctx context.Context, expr string, w metric.Window) ([]metric.Series, error) {
	if q.live != nil {
		answer, err := q.live.Range(ctx, expr, w)
		if err == nil || q.live.Err() == nil {
			return answer, err
		}
	}
	if q.rebuilt == nil && q.err == nil {
		q.rebuilt, q.end, q.err = Metrics(ctx, q.bundle)
	}
	if q.err != nil {
		return nil, q.err
	}
	return q.rebuilt.Range(ctx, expr, w)
}

// close ends a store that was rebuilt.
func (q *queries) close() {
	if q.end != nil {
		_ = q.end()
	}
}

// Metrics opens the metric store of a run for queries. A store that is missing or incomplete is rebuilt from
// the record in a temporary folder. The returned function closes it.
func Metrics(ctx context.Context, b *result.Bundle) (*metric.Store, func() error, error) {
	dir := filepath.Join(b.Dir(), metric.Dir)
	// A store with links to other files, or pipes, is not opened.
	if _, err := os.Lstat(filepath.Join(dir, completeMark)); err == nil && durable.CheckTree(b.Dir(), metric.Dir) == nil {
		if store, err := metric.OpenBlocks(dir, b.Manifest()); err == nil {
			return store, store.Close, nil
		}
	}
	dir, err := os.MkdirTemp("", "bragg-metrics-")
	if err != nil {
		return nil, nil, fmt.Errorf("rebuild the metrics of run %q: %w", b.Manifest().Run, err)
	}
	store, err := metric.Rebuild(ctx, b, dir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return store, func() error { return errors.Join(store.Close(), os.RemoveAll(dir)) }, nil
}
