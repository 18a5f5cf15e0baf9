package session

import (
	"os"
	"sync"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// cache is the metric store of a run in progress. It opens in the background, because the first I/O should not wait for
// it, and receives data on its own goroutine, because the record should not wait for it either. A store that fails does
// not affect the run: remote writes continue, and the store can be rebuilt from the record.
type cache struct {
	mu      sync.Mutex
	changed sync.Cond // of everything below; its lock is mu
	waiting []func(*metric.Store) error
	store   *metric.Store
	dir     string
	open    bool // the store takes what waits
	closing bool // nothing more comes; what waits is still taken
	ended   bool // what waits is of no use
	worker  sync.WaitGroup
}

// waitingMax bounds the queue for an open store: two seconds of data from a thousand agents. Beyond it, recording blocks.
const waitingMax = 2048

func newCache() *cache {
	c := &cache{}
	c.changed.L = &c.mu
	return c
}

func (c *cache) add(to func(*metric.Store) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open && !c.ended && !c.closing && len(c.waiting) >= waitingMax {
		c.changed.Wait()
	}
	if c.ended || c.closing {
		return
	}
	c.waiting = append(c.waiting, to)
	c.changed.Broadcast()
}

// start opens the store. The caller does not call take before it has returned. remote receives all data that the store
// receives; it may be nil. The returned channel is closed when the store breaks, and err returns why.
func (c *cache) start(dir string, m result.Manifest, remote *metric.Remote) (broken <-chan struct{}) {
	store, err := metric.Open(dir, m)
	if err != nil {
		store = metric.Forwarder(m, err)
	}
	if remote != nil {
		store.Forward(remote)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.dir, c.open = store, dir, true
	c.changed.Broadcast()
	c.worker.Go(c.work)
	return store.Broken()
}

// work passes queued data to the store until the cache closes. Errors of a broken store are reported on its channel.
func (c *cache) work() {
	for {
		c.mu.Lock()
		for len(c.waiting) == 0 && !c.closing {
			c.changed.Wait()
		}
		batch := c.waiting
		c.waiting = nil
		c.changed.Broadcast()
		c.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, to := range batch {
			_ = to(c.store)
		}
	}
}

// err returns why the store is broken.
func (c *cache) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		return nil
	}
	return c.store.Err()
}

// take returns the store with all its data visible to queries; nil if there is none.
func (c *cache) take() *metric.Store {
	c.mu.Lock()
	c.closing = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.worker.Wait()
	c.mu.Lock()
	store, dir := c.store, c.dir
	c.store, c.ended, c.waiting = nil, true, nil
	c.mu.Unlock()
	if store == nil {
		return nil
	}
	if store.Flush() != nil {
		discard(store, dir)
		return nil
	}
	return store
}

// discard ends a store of which nothing is kept, and gives its space back.
func discard(store *metric.Store, dir string) {
	_ = store.Close()
	_ = os.RemoveAll(dir)
}

// close closes a cache that has not been taken.
func (c *cache) close() {
	if store := c.take(); store != nil {
		discard(store, c.dir)
	}
}
