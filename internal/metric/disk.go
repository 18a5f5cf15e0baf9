package metric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// outOfOrder is how late a value may arrive: agents buffer at least 15 minutes while they are disconnected.
	outOfOrder       = time.Hour
	commitEvery      = time.Second
	commitSamplesMax = 20_000
	// upkeepEvery and upkeepSamples determine when full chunks leave memory and old ones become blocks, whichever comes first.
	upkeepEvery   = time.Minute
	upkeepSamples = 2_000_000
	idleWaitMax   = 10 * time.Second
	// never is longer than any run.
	never = 10 * 365 * 24 * time.Hour
)

// disk is the library's database in a folder.
//
// The library panics when it cannot write a chunk because the disk is full or the folder was removed. It panics with its own
// locks held, on the goroutine that writes, which may be one that it started. So it is configured to start none: upkeep replaces
// its periodic work, the appending goroutine writes its chunks, and it has no write-ahead log, whose replay would write chunks on
// further goroutines (data lost in a crash is rebuilt from the record). Every call goes through attempt, which turns a panic into
// the error that breaks the disk permanently. After a panic the database is not called again: a lock that is still held would
// block the caller forever.
type disk struct {
	db     *tsdb.DB          // nil if only queries are possible
	source storage.Queryable // of db, or of its blocks
	end    func() error      // closes the source; nil: it was never opened

	mu        sync.Mutex // guards the fields below; taken only inside attempt
	app       storage.AppenderV2
	pending   int
	unkept    int // samples since the last upkeep
	committed time.Time

	due    chan struct{} // upkeepSamples have arrived
	stop   context.CancelFunc
	kept   chan struct{} // closed when upkeep has ended
	once   sync.Once
	broken chan struct{}
	why    error // set before broken is closed
	// poisoned: the library panicked, and may have left locks behind.
	poisoned atomic.Bool
	inside   sync.WaitGroup // calls of attempt
}

// value is one value of one series, on its way to a disk.
type value struct {
	ref    *storage.SeriesRef // of the series; the disk sets and reads it
	labels labels.Labels
	millis int64
	number float64
	times  *histogram.Histogram // nil: number counts
}

// openDisk opens the database in dir and creates it if there is none. Values outside blocks are lost: see persist.
func openDisk(dir string) (*disk, error) {
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = outOfOrder.Milliseconds()
	options.RetentionDuration = never.Milliseconds()
	options.NoLockfile = false
	options.WALSegmentSize = -1
	options.HeadChunksWriteQueueSize = 0
	options.BlockReloadInterval = never
	ctx, stop := context.WithCancel(context.Background())
	d := &disk{
		committed: time.Now(), due: make(chan struct{}, 1), stop: stop, kept: make(chan struct{}), broken: make(chan struct{}),
	}
	err := d.survive(func() (err error) {
		if d.db, err = tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, nil); err == nil {
			d.source, d.end = d.db, d.db.Close
		}
		return err
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("open metric store %q: %w", dir, err)
	}
	d.db.DisableCompactions()
	go d.upkeep(ctx)
	return d, nil
}

// brokenDisk is a disk that refuses all writes.
func brokenDisk(why error) *disk {
	d := &disk{stop: func() {}, kept: make(chan struct{}), broken: make(chan struct{})}
	_ = d.fail(why)
	return d
}

// upkeep does the periodic work of the library.
func (d *disk) upkeep(ctx context.Context) {
	defer close(d.kept)
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.broken:
			return
		case <-tick.C:
		case <-d.due:
		}
		err := d.survive(func() error {
			d.db.ForceHeadMMap()
			return d.db.Compact(ctx)
		})
		if err != nil && ctx.Err() == nil {
			_ = d.fail(err)
			return
		}
	}
}

// survive calls what, and breaks the disk if it panics.
func (d *disk) survive(what func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, is := p.(error)
			if !is {
				cause = fmt.Errorf("%v", p)
			}
			d.poisoned.Store(true)
			err = d.fail(cause)
		}
	}()
	return what()
}

// fail breaks the disk, the first time, and returns why it is broken.
func (d *disk) fail(why error) error {
	d.once.Do(func() {
		d.why = why
		close(d.broken)
	})
	<-d.broken
	return d.why
}

func (d *disk) fault() error {
	select {
	case <-d.broken:
		return d.why
	default:
		return nil
	}
}

// attempt calls what on a new goroutine and waits until it returns or the disk breaks. In the latter case the goroutine may never
// end, so what must not change anything that its caller reads, except its return values.
func attempt[T any](d *disk, what func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	if err := d.fault(); err != nil {
		return none, err
	}
	done := make(chan outcome, 1)
	d.inside.Add(1)
	go func() {
		defer d.inside.Done()
		var o outcome
		o.err = d.survive(func() (err error) {
			o.value, err = what()
			return err
		})
		done <- o
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-d.broken:
		return none, d.why
	}
}

// do is attempt without a value.
func (d *disk) do(what func() error) error {
	_, err := attempt(d, func() (struct{}, error) { return struct{}{}, what() })
	return err
}

// append takes values, which must not change afterwards. A value that arrives too late is dropped, because the record has it. Any
// other fault breaks the disk.
func (d *disk) append(values []value) error {
	return d.do(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.app == nil {
			d.app = d.db.AppenderV2(context.Background())
		}
		for i := range values {
			v := &values[i]
			ref, err := d.app.Append(*v.ref, v.labels, 0, v.millis, v.number, v.times, nil, storage.AOptions{})
			if err = tolerate(err); err != nil {
				return d.fail(fmt.Errorf("append to %s: %w", v.labels, err))
			}
			*v.ref = ref
		}
		d.pending += len(values)
		if d.pending < commitSamplesMax && time.Since(d.committed) < commitEvery {
			return nil
		}
		return d.commitLocked()
	})
}

func (d *disk) commit() error {
	return d.do(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.commitLocked()
	})
}

func (d *disk) commitLocked() error {
	d.committed = time.Now()
	if d.app == nil {
		return nil
	}
	app := d.app
	d.unkept += d.pending
	d.app, d.pending = nil, 0
	if err := app.Commit(); err != nil {
		return d.fail(fmt.Errorf("commit metrics: %w", err))
	}
	if d.unkept >= upkeepSamples {
		d.unkept = 0
		select {
		case d.due <- struct{}{}:
		default:
		}
	}
	return nil
}

// endUpkeep waits until only the caller uses the database. Compaction waits for values that are not committed.
func (d *disk) endUpkeep() {
	_ = d.commit()
	d.stop()
	select {
	case <-d.kept:
	case <-d.broken:
	}
}

// persist writes everything into blocks, so that openDisk finds it again. Nothing is appended any more.
func (d *disk) persist() error {
	d.endUpkeep()
	return d.do(func() error {
		head := d.db.Head()
		if head.NumSeries() > 0 {
			if err := d.db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())); err != nil {
				return d.fail(err)
			}
		}
		if err := d.db.CompactOOOHead(context.Background()); err != nil {
			return d.fail(err)
		}
		return nil
	})
}

// idle waits until no goroutine is inside the library. It returns false if that cannot be determined.
func (d *disk) idle() bool {
	idle := make(chan struct{})
	go func() {
		<-d.kept
		d.inside.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return !d.poisoned.Load()
	case <-time.After(idleWaitMax):
		return false
	}
}

// close closes the database. After a panic of the library, the database and its files stay open.
func (d *disk) close() error {
	d.endUpkeep()
	err := d.fault()
	switch {
	case err == nil:
		return d.do(d.end)
	case d.end != nil && d.idle():
		return errors.Join(err, d.survive(d.end))
	}
	return err
}

// tolerate ignores errors for values that the store already has or that arrive too late; the record has them.
func tolerate(err error) error {
	for _, known := range []error{
		storage.ErrOutOfOrderSample, storage.ErrOutOfBounds, storage.ErrTooOldSample, storage.ErrDuplicateSampleForTimestamp,
	} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}
