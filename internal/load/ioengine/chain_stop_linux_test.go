//go:build linux && (amd64 || arm64)

package ioengine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
)

// chained returns a worker that is about to begin, on files that are there.
func chained(t *testing.T, options string, files int) *worker {
	t.Helper()
	text := "[j]\nioengine=psync\nbs=4k\n" + strings.ReplaceAll(options, " ", "\n") + "\n"
	w := load.Workload{Name: "j", Instance: 1}
	var names []string
	for i := range files {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		name := "/dev/sd" + string(rune('b'+i))
		w.Devices = append(w.Devices, load.Device{Name: name, Path: path, SizeBytes: 1 << 20})
		names = append(names, name)
	}
	text += "filename=" + strings.Join(names, ":") + "\n"
	parsed, list := fiojob.Parse("job.fio", text, fiojob.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	run, err := New().PrepareJobs(t.Context(), w, parsed.Jobs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close() })
	run.shared.clock = measuring.NewClock(time.Now().UnixNano())
	run.shared.period = int64(time.Second)
	one := run.phases[0][0]
	one.PeriodEnd = backend.Never
	one.begin(run.shared.clock.Now())
	one.beginChains()
	if one.chain == nil {
		t.Fatal("the job has no chain")
	}
	return one
}

// pend makes the first operations of the batch the rest of a chain that ran out of its time.
func pend(w *worker, n int) {
	w.chain.Add(w.batch.Slots[:n])
	w.inFlight += n
	w.batch.Count = copy(w.batch.Slots, w.batch.Slots[n:w.batch.Count])
}

// A stop that comes after operations were made for a chain that has some left gives all of them back.
func TestStopBetweenTwoLinksLosesNothing(t *testing.T) {
	for pending := range 8 {
		w := chained(t, "rw=randwrite size=1m time_based runtime=1h", 1)
		l := &w.lanes[0]
		l.reserve = len(w.slots) - 8
		w.mu.Lock()
		now := w.shared.clock.Now()
		w.fill(now)
		if w.batch.Count != 8 {
			t.Fatalf("%d operations were made, want 8", w.batch.Count)
		}
		pend(w, pending)
		w.shared.stop.Store(true)
		n := w.exchangeChain(backend.Never, now)
		if err := w.reap(w.done[:n], w.shared.clock.Now()); err != nil {
			t.Error(err)
		}
		if w.inFlight != w.chain.Left || l.InFlight != w.chain.Left || len(l.Free) != len(w.slots)-w.chain.Left {
			t.Errorf("%d pending: %d of the worker's and %d of the lane's are in flight, %d in the chain", pending, w.inFlight, l.InFlight, w.chain.Left)
		}
		w.mu.Unlock()
	}
}

// The end of the load ends no end_fsync: those that did not fit into the time of a chain follow.
func TestLastSyncsOutliveTheEnd(t *testing.T) {
	w := chained(t, "rw=write size=3m end_fsync=1", 3)
	l := &w.lanes[0]
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range l.Streams {
		l.Streams[i].Writes, l.syncs.unsynced = 1, 1
	}
	now := w.shared.clock.Now()
	w.shared.stop.Store(true)
	l.stop(now)
	w.fill(now)
	if w.batch.Count != 3 {
		t.Fatalf("%d syncs at the end, want 3", w.batch.Count)
	}
	pend(w, 2)
	for range 3 {
		if w.inFlight+w.batch.Count == 0 {
			break
		}
		n := w.exchangeChain(backend.Never, now)
		for _, c := range w.done[:n] {
			if c.Result != 0 {
				t.Errorf("sync of slot %d: %d", c.Slot, c.Result)
			}
		}
		w.batch.Count = 0
	}
	if w.inFlight > 0 {
		t.Errorf("%d syncs were neither done nor given back", w.inFlight)
	}
}

// A job ends at its first error: what its chain had left is given back, not done.
func TestChainEndsAtItsFirstError(t *testing.T) {
	const bad = 2 // in the order of the chain
	w := chained(t, "rw=randwrite size=1m time_based runtime=1h", 1)
	l := &w.lanes[0]
	l.reserve = len(w.slots) - 8
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.shared.clock.Now()
	w.fill(now)
	if w.batch.Count != 8 {
		t.Fatalf("%d operations were made, want 8", w.batch.Count)
	}
	closed := *w.slots[w.batch.Slots[bad]].File
	closed.Fd = -1
	w.slots[w.batch.Slots[bad]].File = &closed
	var results []int32
	for range 100 {
		n := w.exchangeChain(backend.Never, now)
		w.batch.Count = 0
		for _, c := range w.done[:n] {
			results = append(results, c.Result)
		}
		if err := w.reap(w.done[:n], w.shared.clock.Now()); err != nil {
			w.shared.stop.Store(true)
		}
		if w.inFlight == 0 {
			break
		}
	}
	for i, result := range results {
		switch want := int32(4096); {
		case i == bad && result >= 0:
			t.Errorf("operation %d: %d, want an error", i, result)
		case i > bad && result != backend.Undone, i < bad && result != want:
			t.Errorf("operation %d: %d", i, result)
		}
	}
	if len(results) != 8 || l.InFlight != 0 || len(l.Free) != len(w.slots) {
		t.Errorf("%d results, %d in flight, %d of %d slots free", len(results), l.InFlight, len(l.Free), len(w.slots))
	}
}
