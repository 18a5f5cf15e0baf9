//go:build linux

package ioengine_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// loop makes a loop device of 64 MiB.
func loop(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64*mib); err != nil {
		t.Fatal(err)
	}
	return testreq.Loop(t, path, args...)
}

// own is consent to a disk that the run itself made.
func own(size int64) load.Consent { return load.Consent{Own: true, SizeBytes: size} }

func TestFallBackByVariable(t *testing.T) {
	t.Setenv("BRAGG_IO_URING", "off")
	plan, err := ioengine.New().Plan(job("rw=randread ioengine=libaio iodepth=8"))
	if err != nil || plan.Engine.String() != "native psync (io_uring refused: BRAGG_IO_URING=off)" || plan.Jobs[0].QueueDepth != 8 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	plan, err = ioengine.New().Plan(job("rw=randread ioengine=libaio iodepth=8 direct=1"))
	if err != nil || plan.Engine.String() != "native libaio (io_uring refused: BRAGG_IO_URING=off)" || plan.Jobs[0].QueueDepth != 8 {
		t.Errorf("plan %+v, %v", plan, err)
	}
}

// A file system without direct access is used buffered, and the instance says so.
func TestFileSystemWithoutDirectAccess(t *testing.T) {
	testreq.Root(t)
	dir := filepath.Join(t.TempDir(), "ram")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-t", "ramfs", "none", dir)
	t.Cleanup(func() { command(t, "umount", dir) })
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, make([]byte, 2*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	w := job("rw=write bs=64k direct=1 size=1m ioengine=libaio")
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 2 * mib}}
	instance, err := ioengine.New().Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if engine := instance.(load.Describer).Engine().String(); !strings.Contains(engine, "buffered") || !strings.Contains(engine, path) {
		t.Errorf("engine %q does not say that access is buffered", engine)
	}
	var log loadtest.Log
	if err := instance.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	if sum := loadtest.Add(log.Intervals()); sum.Directions[1].Operations != 16 {
		t.Errorf("%d writes, want 16", sum.Directions[1].Operations)
	}
}

// What direct access would refuse for each operation is refused once, before the start.
func TestMisalignedDirectAccess(t *testing.T) {
	device := loop(t, "--sector-size", "4096", "--direct-io=on")
	for options, says := range map[string]string{
		"rw=randread bs=512":                            "block size 512",
		"rw=randread bs=4k ba=1k":                       "alignment 1024",
		"rw=read bs=4k offset=512":                      "offset 512",
		"rw=read:1k bs=4k":                              "skip 1024",
		"rw=randrw bs=8k,2k size=1m":                    "block size 2048",
		"rw=read bs=4k zonesize=1m zoneskip=1k size=8m": "distance of zones",
	} {
		w := job(options + " direct=1 ioengine=libaio")
		w.Devices = []load.Device{{Name: "/dev/sdb", Path: device, SizeBytes: 64 * mib, Consent: own(64 * mib)}}
		nothingLeft := loadtest.NothingLeft(t)
		if _, err := ioengine.New().Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error with %q", options, err, says)
		}
		nothingLeft()
	}
}

// A device that is mounted is never written.
func TestMountedDeviceIsRefused(t *testing.T) {
	testreq.Program(t, "mkfs.ext4")
	device := loop(t)
	command(t, "mkfs.ext4", "-q", device)
	dir := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", device, dir)
	t.Cleanup(func() { command(t, "umount", dir) })
	w := job("rw=write bs=64k size=1m")
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: device, SizeBytes: 64 * mib, Consent: own(64 * mib)}}
	_, err := ioengine.New().Prepare(t.Context(), w)
	loadtest.CheckRefusal(t, err, []string{"mounted"})
	// Nor is the file below it, on which the load would be a change of what is mounted.
	w.Devices[0].Path = command(t, "losetup", "--noheadings", "--output", "BACK-FILE", device)
	_, err = ioengine.New().Prepare(t.Context(), w)
	loadtest.CheckRefusal(t, err, []string{"held", "mounted"})
}

// A device smaller than its workload states is found before anything is written.
func TestSmallDevice(t *testing.T) {
	w := files(t, job("rw=write bs=64k size=32m"))
	if err := os.Truncate(w.Devices[0].Path, 16*mib); err != nil {
		t.Fatal(err)
	}
	if _, err := ioengine.New().Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("prepare: %v", err)
	}
	if _, err := ioengine.New().Prepare(t.Context(), job("rw=write bs=64k size=32m")); err == nil || !strings.Contains(err.Error(), "/dev/sdb") {
		t.Errorf("prepare without the file: %v", err)
	}
}

// freezable is a file system of its own, mounted.
func freezable(t *testing.T) string {
	t.Helper()
	testreq.Program(t, "mkfs.ext4")
	device := loop(t)
	command(t, "mkfs.ext4", "-q", device)
	dir := filepath.Join(t.TempDir(), "frozen")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", device, dir)
	t.Cleanup(func() {
		// What hangs ends soon after the thaw and releases the file.
		var err error
		for range 100 {
			if err = exec.Command("umount", dir).Run(); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("umount: %v", err)
	})
	return dir
}

// A device that stops to answer cannot hold the end of a run: after a while its operations are left to the kernel. A
// frozen file system is such a device.
func TestHangingDevice(t *testing.T) {
	dir := freezable(t)
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, make([]byte, 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	defer ioengine.SetDrainMax(400 * time.Millisecond)()
	for _, options := range []string{"ioengine=libaio iodepth=4", "ioengine=psync"} {
		w := job("rw=randwrite bs=4k size=8m direct=1 time_based " + options)
		w.Runtime = 200 * time.Millisecond
		w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 8 * mib}}
		instance, err := ioengine.New().Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		var log loadtest.Log
		command(t, "fsfreeze", "--freeze", dir)
		err = instance.Run(t.Context(), &log)
		command(t, "fsfreeze", "--unfreeze", dir)
		if err == nil || !strings.Contains(err.Error(), "hang") {
			t.Errorf("%s: %v, want an error that says that operations hang", options, err)
		}
		all := log.Intervals()
		loadtest.CheckIntervals(t, w, all)
		last := all[len(all)-1]
		if h := last.Waiting; h == nil || h.Count() != last.InFlight || h.Count() == 0 || time.Duration(h.Max()) < 400*time.Millisecond {
			t.Errorf("%s: %d operations hang, of which some wait: %v", options, last.InFlight, h)
		}
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSplitsAreExact: between two splits, intervals have the operations that began there and no others, also those that completed
// later, because the file system was frozen at a split.
func TestSplitsAreExact(t *testing.T) {
	dir := freezable(t)
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, make([]byte, 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	for i, options := range []string{"ioengine=libaio iodepth=4 direct=1", "ioengine=psync", "ioengine=psync direct=1 rate_iops=500"} {
		fmt.Fprintf(&config, "[job%d]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nsize=8m\ntime_based\n%s\n", i, strings.ReplaceAll(options, " ", "\n"))
	}
	w := load.Workload{Name: "split", ConfigName: "split.fio", Generator: "native", Config: config.String(), Runtime: 2500 * time.Millisecond,
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 8 * mib}}}
	run := prepared(t, w)
	seen := &flightsOfAll{}
	run.Observe(func(string, int) ioengine.Observer { return seen })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 8 {
			time.Sleep(200 * time.Millisecond)
			_ = run.Split(t.Context(), time.Now().Add(100*time.Millisecond)) // too late only on a machine that stands still
			if i == 2 || i == 5 {
				command(t, "fsfreeze", "--freeze", dir)
				time.Sleep(50 * time.Millisecond * time.Duration(i))
				command(t, "fsfreeze", "--unfreeze", dir)
			}
		}
	}()
	var log loadtest.Log
	err := run.Run(t.Context(), &log)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	splits := map[int64]bool{} // starts of intervals that are not whole seconds, but the first
	for _, iv := range log.Intervals()[1:] {
		if iv.StartNanos%1e9 != 0 {
			splits[iv.StartNanos] = true
		}
	}
	times := slices.Sorted(maps.Keys(splits))
	if len(times) < 4 {
		t.Fatalf("%d splits, want 8", len(times))
	}
	got, want := make([]stat.Histogram, len(times)+1), make([]stat.Histogram, len(times)+1)
	epoch := func(at int64) int { i, _ := slices.BinarySearch(times, at+1); return i }
	early := 0
	for _, iv := range log.Intervals() {
		own := iv.OnTime()
		got[epoch(iv.StartNanos)].Merge(own[interval.Write].ResponseOrService())
		for i := range iv.Early {
			e := &iv.Early[i]
			early += int(e.Directions[interval.Write].Operations)
			got[epoch(iv.StartNanos+e.ToNanos-1)].Merge(e.Directions[interval.Write].ResponseOrService())
		}
	}
	for i := range seen.all {
		o := &seen.all[i]
		want[epoch(o.Intended)].Record(uint64(o.Completed - o.Intended))
	}
	if early < 8 {
		t.Errorf("%d operations straddle a split", early)
	}
	for i := range want {
		if got[i].Count() != want[i].Count() || stat.BucketOf(got[i].Max()) != stat.BucketOf(want[i].Max()) {
			t.Errorf("between splits %d and %d: %d operations up to %d ns began, %d up to %d are recorded", i-1, i,
				want[i].Count(), want[i].Max(), got[i].Count(), got[i].Max())
		}
	}
}

// flightsOfAll is flights of several jobs.
type flightsOfAll struct {
	mu sync.Mutex
	flights
}

func (f *flightsOfAll) Completed(batch []ioengine.Completed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flights.Completed(batch)
}

// completions has when operations of all jobs completed.
type completions struct {
	mu  sync.Mutex
	all []int64
}

func (c *completions) Begin(int64) {}

func (c *completions) Completed(batch []ioengine.Completed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range batch {
		c.all = append(c.all, batch[i].Completed)
	}
}

// TestStallIsMeasured: while a file system is frozen, no write completes. The gaps of the intervals, joined over jobs and seconds, are those
// between the completions.
func TestStallIsMeasured(t *testing.T) {
	dir := freezable(t)
	var config strings.Builder
	for i, options := range []string{"ioengine=libaio iodepth=4 direct=1", "ioengine=psync direct=1", "ioengine=psync", "ioengine=psync direct=1 rate_iops=500"} {
		fmt.Fprintf(&config, "[job%d]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nsize=8m\ntime_based\n%s\n", i, strings.ReplaceAll(options, " ", "\n"))
	}
	w := load.Workload{Name: "stall", ConfigName: "stall.fio", Generator: "native", Config: config.String(), Runtime: 2500 * time.Millisecond}
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, make([]byte, 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 8 * mib}}
	run := prepared(t, w)
	seen := &completions{}
	run.Observe(func(string, int) ioengine.Observer { return seen })
	var stalls analysis.Stalls
	var frozen time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(600 * time.Millisecond)
		command(t, "fsfreeze", "--freeze", dir)
		begun := time.Now()
		time.Sleep(800 * time.Millisecond)
		frozen = time.Since(begun)
		command(t, "fsfreeze", "--unfreeze", dir)
	}()
	var from, to int64
	var waited uint64
	err := run.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) {
		stalls.Add(&iv)
		if from == 0 {
			from = iv.StartNanos
		}
		to = iv.EndNanos()
		if iv.Waiting != nil {
			waited = max(waited, iv.Waiting.Max())
		}
	}))
	<-done
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen.all)
	var want int64
	before := from
	for _, at := range append(seen.all, to) {
		want, before = max(want, at-before), at
	}
	got := stalls.Of("", func(string, string, bool) bool { return true }).In(from, to)
	if got.LongestNanos != want || time.Duration(want) < frozen {
		t.Errorf("the longest stall is %d ns, that of the completions %d; frozen for %s", got.LongestNanos, want, frozen)
	}
	if waited < uint64(interval.WaitingMin) {
		t.Errorf("at the end of the second, operations had waited for %d ns at most", waited)
	}
}

// Reading what was never written is reported, for files and by loop devices, unless the load itself writes it before.
func TestUnwrittenReadsAreNoted(t *testing.T) {
	sparse := files(t, job("rw=randread bs=4k size=32m")).Devices[0]
	half, err := os.OpenFile(sparse.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.Write(make([]byte, 16*mib)); err != nil {
		t.Fatal(err)
	}
	half.Close()
	onLoop := sparse
	onLoop.Path = testreq.Loop(t, sparse.Path)
	for _, c := range []struct{ options, note string }{
		{"rw=randread bs=4k size=32m", "; unwritten: most of what is read of /dev/sdb was never written"},
		{"rw=read bs=64k size=16m zonemode=strided zonesize=1m zonerange=1m zoneskip=3m filesize=64m", "; unwritten: most of what is read of /dev/sdb"},
		{"rw=randread bs=4k size=16m", ""},
		{"rw=randread bs=4k size=32m ioengine=null", ""},
	} {
		for _, device := range []load.Device{sparse, onLoop} {
			w := job(c.options)
			w.Devices = []load.Device{device}
			instance, err := ioengine.New().Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			engine := instance.(load.Describer).Engine().String()
			if err := instance.Close(); err != nil {
				t.Error(err)
			}
			if c.note == "" && strings.Contains(engine, "unwritten") || !strings.Contains(engine, c.note) {
				t.Errorf("%s on %s: %q, want a note %q", c.options, device.Path, engine, c.note)
			}
		}
	}
}
