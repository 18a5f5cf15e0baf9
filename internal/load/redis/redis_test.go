package redis_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/redis"
	"github.com/braggdev/bragg/internal/testreq"
)

const helperDisk = "BRAGG_REDIS_TEST_DISK"

func TestMain(m *testing.M) {
	if disk := os.Getenv(helperDisk); disk != "" {
		loadtest.BeHelper(redis.Generator{}, load.Workload{Name: "w", Options: map[string]string{"keys": "1000", "appendonly": "yes"},
			IntervalLength: 100 * time.Millisecond, Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 1 << 30}}})
	}
	os.Exit(m.Run())
}

// needRedis skips a test where Debian's packages redis-server and redis-tools are missing.
func needRedis(t testing.TB) {
	t.Helper()
	for _, name := range []string{"redis-server", "redis-benchmark", "redis-cli"} {
		if _, err := os.Stat("/usr/bin/" + name); err != nil {
			testreq.Skip(t, "no "+name+" (make deps)")
		}
	}
}

// workload returns a load on a disk that is a file.
func workload(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sdb")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: redis.Name, Seed: 42, Options: options,
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 1 << 30}}}
}

func prefill(t testing.TB, w load.Workload) error {
	t.Helper()
	w.Prefill = true
	return loadtest.Drive(t.Context(), redis.Generator{}, w, &loadtest.Log{})
}

func prefilled(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := workload(t, options)
	if err := prefill(t, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestContract(t *testing.T) {
	needRedis(t)
	w := prefilled(t, map[string]string{"keys": "2000", "clients": "4", "appendonly": "yes", "appendfsync": "everysec"})
	loadtest.RunAny(t, loadtest.Subject{Generator: redis.Generator{}, Endless: func(testing.TB) load.Workload { return w }})
}

func TestSimulation(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: redis.Simulation, Endless: func(t testing.TB) load.Workload { return workload(t, nil) }})
}

// Run itself holds its totals against the server's counters: here of all commands, with pipelines and threads, and of a load that is stopped.
func TestTotals(t *testing.T) {
	needRedis(t)
	w := prefilled(t, map[string]string{"keys": "1000", "clients": "6", "threads": "2", "pipeline": "7", "commands": "get set incr hset sadd zadd",
		"value_size": "1KiB", "appendonly": "yes", "appendfsync": "always", "io_threads": "2"})
	w.IntervalLength = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log loadtest.Log
	seen := map[int]bool{}
	if err := loadtest.Drive(ctx, redis.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
		log.Interval(iv)
		for kind := range iv.Directions {
			if iv.Directions[kind].Operations > 0 {
				seen[kind] = true
			}
		}
		if len(seen) == 6 && iv.Sequence >= 8 {
			cancel()
		}
	})); err != nil {
		t.Fatal(err)
	}
	sum := loadtest.Add(log.Intervals())
	for kind := range 6 {
		if d := sum.Directions[kind]; d.Operations == 0 || d.Operations%7 != 0 || d.Service.Count() != d.Operations {
			t.Errorf("command %d: %+v", kind, d)
		}
	}
	last := log.Intervals()[len(log.Intervals())-2].Gauges
	if last[0] < 1 || last[3] <= 0 {
		t.Errorf("memory %v MB, append-only file %v MB", last[0], last[3])
	}
}

// A server that is full evicts keys, or refuses writes.
func TestMemoryLimit(t *testing.T) {
	needRedis(t)
	options := map[string]string{"keys": "20000", "value_size": "1KiB", "maxmemory": "12MiB", "commands": "set"}
	if err := prefill(t, workload(t, options)); err == nil || !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("full: %v", err)
	}
	options["maxmemory_policy"] = "allkeys-lru"
	w := prefilled(t, options)
	w.Runtime, w.IntervalLength = 1500*time.Millisecond, 300*time.Millisecond
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), redis.Generator{}, w, &log); err != nil {
		t.Fatal(err)
	}
	evicted := 0.0
	for _, iv := range log.Intervals() {
		evicted = max(evicted, iv.Gauges[1])
	}
	if evicted == 0 {
		t.Error("no evictions are recorded")
	}
}

func TestRefusals(t *testing.T) {
	needRedis(t)
	prepare := func(w load.Workload) error {
		in, err := redis.Generator{}.Prepare(t.Context(), w)
		if err == nil {
			_ = in.Close()
		}
		return err
	}
	w := workload(t, map[string]string{"keys": "100"})
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "has no data") {
		t.Errorf("without a prefill: %v", err)
	}
	if err := prefill(t, w); err != nil {
		t.Fatal(err)
	}
	for _, options := range []map[string]string{{"keys": "200"}, {"keys": "100", "appendonly": "yes"}} {
		other := w
		other.Options = options
		if err := prepare(other); err == nil || !strings.Contains(err.Error(), "keys on disk") {
			t.Errorf("%v: %v", options, err)
		}
	}
	first, err := redis.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "another load") {
		t.Errorf("twice at once: %v", err)
	}
}

// TestProgramsDieWithUs kills a process that runs a server and redis-benchmark, as power off does with an agent, and then starts again.
func TestProgramsDieWithUs(t *testing.T) {
	needRedis(t)
	w := prefilled(t, map[string]string{"keys": "1000", "appendonly": "yes"})
	room := filepath.Join(filepath.Dir(w.Devices[0].Path), "redis-sdb")
	loadtest.Orphans(t, []string{helperDisk + "=" + w.Devices[0].Path}, 5, func() {
		if len(loadtest.Users(t, room)) < 2 {
			t.Errorf("processes %v use %s, want the helper and the server", loadtest.Users(t, room), room)
		}
	}, func() (left []string) {
		for range loadtest.Users(t, room) {
			left = append(left, "process")
		}
		return left
	})
	w.Runtime = 300 * time.Millisecond
	if err := loadtest.Drive(t.Context(), redis.Generator{}, w, &loadtest.Log{}); err != nil {
		t.Errorf("start again: %v", err)
	}
}
