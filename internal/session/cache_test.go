package session

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
)

// TestCacheTakesEverythingInOrder: what came before the store was open, and what came then, from many sides.
func TestCacheTakesEverythingInOrder(t *testing.T) {
	c := newCache()
	var taken atomic.Int64
	last := make([]int, 8)
	add := func(who, n int) {
		c.add(func(*metric.Store) error {
			taken.Add(1)
			if last[who] != n-1 {
				t.Errorf("%d of %d came after %d", n, who, last[who])
			}
			last[who] = n
			return nil
		})
	}
	for who := range last {
		add(who, 1)
	}
	c.start(filepath.Join(t.TempDir(), "metrics"), resulttest.Manifest(resulttest.Params{VMs: 1, Duration: time.Second}), nil)
	const each = waitingMax // so that one of the writers has to wait
	var wait sync.WaitGroup
	for who := range last {
		wait.Go(func() {
			for n := range each {
				add(who, n+2)
			}
		})
	}
	wait.Wait()
	store := c.take()
	if store == nil {
		t.Fatal("there is no store")
	}
	if got := taken.Load(); got != int64(len(last)*(each+1)) {
		t.Errorf("%d were taken", got)
	}
	c.add(func(*metric.Store) error { t.Error("something came after the end"); return nil })
	c.close()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestBrokenCacheKeepsNobodyWaiting: a store that accepts no writes is abandoned, and recording continues.
func TestBrokenCacheKeepsNobodyWaiting(t *testing.T) {
	c := newCache()
	broken := c.start("/dev/null/none", resulttest.Manifest(resulttest.Params{VMs: 1, Duration: time.Second}), nil)
	for range 3 * waitingMax {
		c.add(func(s *metric.Store) error { return s.AppendSamples([]result.Sample{{Name: "x"}}) })
	}
	<-broken
	if err := c.err(); err == nil || !strings.Contains(err.Error(), "/dev/null/none") {
		t.Errorf("it is broken for %v", err)
	}
	if c.take() != nil {
		t.Error("a store that is broken is handed over")
	}
	newCache().close()
}
