package metric

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/braggdev/bragg/internal/result"
)

// OpenBlocks opens for queries the store in dir that Persist completed. Nothing is written there: the folder may be that of others, who
// put links into it meanwhile, and may be read-only. Several processes may query at once.
func OpenBlocks(dir string, m result.Manifest) (*Store, error) {
	d := &disk{stop: func() {}, kept: make(chan struct{}), broken: make(chan struct{})}
	close(d.kept)
	err := d.survive(func() error { return d.openBlocks(dir) })
	if err != nil {
		return nil, fmt.Errorf("open metric store %q: %w", dir, err)
	}
	return newStore(d, m), nil
}

func (d *disk) openBlocks(dir string) error {
	db, err := tsdb.OpenDBReadOnly(dir, os.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	all, err := db.Blocks()
	if err == nil && len(all) == 0 {
		err = errors.New("it has no blocks")
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	d.source, d.end = blocks(all), db.Close
	return nil
}

// blocks are the blocks of a database. The library's own queries of a read-only database open all blocks again, and a head of its files.
type blocks []tsdb.BlockReader

// Querier implements storage.Queryable.
func (b blocks) Querier(from, to int64) (storage.Querier, error) {
	var within []storage.Querier
	for _, block := range b {
		if meta := block.Meta(); meta.MinTime > to || meta.MaxTime <= from { // the end of a block is exclusive
			continue
		}
		q, err := tsdb.NewBlockQuerier(block, from, to)
		if err != nil {
			for _, q := range within {
				err = errors.Join(err, q.Close())
			}
			return nil, err
		}
		within = append(within, q)
	}
	return storage.NewMergeQuerier(within, nil, storage.ChainedSeriesMerge), nil
}
