package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// completeMark says that a metric store holds everything that was recorded.
const completeMark = "complete"

// keep closes the store of a finished run and marks it as complete, so that queries need not rebuild it.
func keep(store *metric.Store, dir string) {
	if store.Close() == nil {
		// Without the mark queries rebuild the store from the record, which takes longer and says the same.
		_ = os.WriteFile(filepath.Join(dir, completeMark), nil, 0o644)
	}
}

// Metrics opens the metric store of a run for queries. A store that is missing, incomplete or in use is rebuilt from
// the record in a temporary folder. The returned function closes it.
func Metrics(ctx context.Context, b *result.Bundle) (*metric.Store, func() error, error) {
	dir := filepath.Join(b.Dir(), metric.Dir)
	if _, err := os.Stat(filepath.Join(dir, completeMark)); err == nil {
		if store, err := metric.Open(dir, b.Manifest()); err == nil {
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
