package ioengine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// The I/O loop allocates nothing per operation, on any back end, open or closed loop.
func TestNoAllocationPerOperation(t *testing.T) {
	for _, c := range []struct {
		options string
		backend string
	}{
		{"ioengine=null rw=randrw bssplit=4k/50:8k/50 norandommap iodepth=32", ""},
		{"ioengine=null rw=randrw bs=4k iodepth=32 rate_iops=100000 rate_process=poisson", ""},
		{"ioengine=libaio rw=randrw bs=4k iodepth=32 size=1m", ""},
		{"ioengine=libaio rw=randrw bs=4k iodepth=4 size=1m", "psync"},
		{"ioengine=psync rw=randrw bs=4k size=1m", ""},
		{"ioengine=pvsync2 rw=randrw bs=4k size=1m", ""},
		{"ioengine=mmap rw=randrw bs=4k size=1m", ""},
		{"ioengine=libaio rw=randrw bs=4k iodepth=32 size=1m direct=1", "libaio"},
		{"ioengine=psync rw=randrw bs=4k size=1m buffer_compress_percentage=50 dedupe_percentage=30", ""},
		{"ioengine=null rw=randread bs=4k random_distribution=normal:10:0.5", ""},
		{"ioengine=null rw=randread bs=4k random_distribution=zoned:60/10:40/90", ""},
	} {
		var operations, allocations uint64
		for try := 0; try < 3 && operations == 0; try++ { // a starved machine may deliver all intervals at the end
			operations, allocations = allocated(t, c.options, c.backend)
		}
		// A merged interval costs some dozen allocations, whatever is in it.
		if operations == 0 || allocations > 1000+operations/1000 {
			t.Errorf("%s %s: %d allocations for %d operations", c.options, c.backend, allocations, operations)
		}
	}
}

// allocated runs a job and returns what was allocated meanwhile: from the second to the fifth interval, because what is
// made once and the delivery of intervals do not count.
func allocated(t *testing.T, options, backend string) (operations, allocations uint64) {
	t.Helper()
	w := files(t, job(options+" time_based"))
	w.Runtime = 700 * time.Millisecond
	w.IntervalLength = 100 * time.Millisecond
	w.Generator = "native"
	var before, after runtime.MemStats
	err := loadtest.Drive(t.Context(), ioengine.Generator{Backend: backend}, w, load.SinkFunc(func(iv interval.Interval) {
		switch {
		case iv.Sequence == 1:
			runtime.ReadMemStats(&before)
		case iv.Sequence > 1 && iv.Sequence <= 5:
			operations += iv.Directions[0].Operations + iv.Directions[1].Operations
			runtime.ReadMemStats(&after)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return operations, after.Mallocs - before.Mallocs
}

// Every operation that was due is either done or counted as not issued, and rates are kept within 0.1 %. A busy machine
// may starve a run at its very end, where what is due cannot be done any more; so the best of some runs counts.
func TestOpenLoopAccounts(t *testing.T) {
	for _, rate := range []int{500, 20_000, 200_000} {
		for _, process := range []string{"linear", "poisson"} {
			w := job(fmt.Sprintf("ioengine=null rw=randread bs=4k iodepth=32 rate_iops=%d rate_process=%s time_based", rate, process))
			w.Runtime = 500 * time.Millisecond
			best := 0.0
			for try := 0; try < 20 && best < 0.999; try++ {
				sum := run(t, ioengine.New(), w)
				done := sum.Directions[interval.Read].Operations
				if done+sum.NotIssued != sum.Due {
					t.Errorf("%s at %d/s: %d due, %d done, %d not issued", process, rate, sum.Due, done, sum.NotIssued)
				}
				if process == "linear" && sum.Due != uint64(rate/2) {
					t.Errorf("linear at %d/s for 0.5 s: %d due", rate, sum.Due)
				}
				best = max(best, float64(done)/float64(sum.Due))
				if testing.Short() {
					break // the race detector takes the time that the rate needs
				}
			}
			if best < 0.999 && !testing.Short() {
				t.Errorf("%s at %d/s: at best %.3f of the due operations were done", process, rate, best)
			}
		}
	}
	// More than any machine can do: what is left over is counted.
	w := job("ioengine=null rw=randread bs=4k rate_iops=30000000 time_based")
	w.Runtime = 200 * time.Millisecond
	w.IntervalLength = 50 * time.Millisecond
	sum := run(t, ioengine.New(), w)
	done := sum.Directions[interval.Read].Operations
	if sum.NotIssued == 0 || done+sum.NotIssued != sum.Due || sum.Due != 6_000_000 {
		t.Errorf("overload: %d due, %d done, %d not issued", sum.Due, done, sum.NotIssued)
	}
	// It is a backlog and not dropped.
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), ioengine.New(), w, &log); err != nil {
		t.Fatal(err)
	}
	if all := log.Intervals(); all[len(all)-1].Backlog == 0 || all[len(all)-1].NotIssued != 0 {
		t.Errorf("overload: the last interval has %d waiting and %d dropped", all[len(all)-1].Backlog, all[len(all)-1].NotIssued)
	}
}

// A size-bound job with a rate ends with its size, and was never due for more.
func TestSizeBoundOpenLoop(t *testing.T) {
	t.Parallel()
	w := job("ioengine=null rw=randread bs=4k size=1m rate_iops=1000")
	w.IntervalLength = 50 * time.Millisecond
	if sum := run(t, ioengine.New(), w); sum.Due != 256 || sum.NotIssued != 0 || sum.Directions[0].Operations != 256 {
		t.Errorf("%d due, %d done, %d not issued; want 256, 256, 0", sum.Due, sum.Directions[0].Operations, sum.NotIssued)
	}
}

func TestScheduleOfJobs(t *testing.T) {
	t.Parallel()
	const config = `[global]
filename=/dev/sdb
ioengine=null
bs=4k
[first]
rw=read
number_ios=100
[second]
stonewall
rw=write
number_ios=50
startdelay=100ms
`
	w := job("")
	w.Config = config
	w.IntervalLength = 20 * time.Millisecond
	w.Generator = "native"
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), ioengine.New(), w, &log); err != nil {
		t.Fatal(err)
	}
	sum := loadtest.Add(log.Intervals())
	if sum.Directions[0].Operations != 100 || sum.Directions[1].Operations != 50 || sum.LengthNanos < int64(100*time.Millisecond) {
		t.Errorf("%d reads, %d writes in %v", sum.Directions[0].Operations, sum.Directions[1].Operations, time.Duration(sum.LengthNanos))
	}
	for _, iv := range log.Intervals()[:3] {
		if iv.Directions[1].Operations > 0 {
			t.Errorf("interval %d: the second job did not wait", iv.Sequence)
		}
	}

	t.Run("ramp", func(t *testing.T) {
		w := job("ioengine=null rw=read bs=4k rate_iops=1000 ramp_time=300ms time_based")
		w.Runtime = 500 * time.Millisecond
		sum := run(t, ioengine.New(), w)
		if n := sum.Directions[0].Operations; n+sum.NotIssued != 500 || sum.Due != 500 {
			t.Errorf("%d operations count, %d were due, want the 500 after the ramp", n, sum.Due)
		}
		if sum.LengthNanos < int64(800*time.Millisecond) {
			t.Errorf("the load took %v, want ramp and runtime", time.Duration(sum.LengthNanos))
		}
	})
	t.Run("thinktime", func(t *testing.T) {
		w := job("ioengine=null rw=read bs=4k thinktime=20ms thinktime_blocks=4 time_based iodepth=8")
		w.Runtime = 200 * time.Millisecond
		// Ten pauses fit in; later ones only if sleeps end early, which they do not.
		if n := run(t, ioengine.New(), w).Directions[0].Operations; n == 0 || n > 4*11 {
			t.Errorf("%d operations with pauses of 20 ms after 4", n)
		}
	})
}

// A queue with a low mark drains before it is filled again, and goes on.
func TestQueueDrainsToItsLowMark(t *testing.T) {
	t.Parallel()
	w := files(t, job("rw=randread bs=4k iodepth=8 iodepth_low=1 size=4m ioengine=libaio iodepth_batch=4"))
	if sum := run(t, ioengine.New(), w); sum.Directions[0].Operations != 1024 {
		t.Errorf("%d reads, want 1024", sum.Directions[0].Operations)
	}
	plan, err := ioengine.New().Plan(w)
	if err != nil || len(plan.Notes) == 0 || !strings.Contains(plan.Notes[0], "iodepth_batch=4") {
		t.Errorf("the plan does not say that iodepth_batch has no effect: %v, %v", plan.Notes, err)
	}
}

func TestSyncs(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"io_uring", "psync"} {
		w := files(t, job("rw=randwrite bs=4k size=256k fsync=4 end_fsync=1 iodepth=4 ioengine=libaio sync=dsync"))
		sum := run(t, ioengine.Generator{Backend: backend}, w)
		if sum.Directions[1].Operations != 64 || sum.Directions[1].ErrorCount() != 0 {
			t.Errorf("%s: %d writes, errors %v", backend, sum.Directions[1].Operations, sum.Directions[1].Errors)
		}
	}
}

func TestPlanNamesWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, options := range []string{
		"rw=read ioengine=mtd", "rw=randread thinkcycles=8", "rw=trim verify=crc32c",
		"rw=read zonemode=zbd", "rw=read steadystate=iops:1%",
	} {
		_, err := ioengine.New().Plan(job(options))
		words := strings.Fields(options)
		key := strings.Split(words[len(words)-1], "=")[0]
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want an error that names %s", options, err, key)
		}
		if text := fmt.Sprintf("%+v", err); err != nil && !strings.Contains(hints(err), "with fio") && !strings.Contains(hints(err), "--engine fio") {
			t.Errorf("%s: no hint at fio in %s", options, text)
		}
	}
	if _, err := (ioengine.Generator{Backend: "magic"}).Plan(job("rw=read")); err == nil || !strings.Contains(err.Error(), "magic") {
		t.Errorf("unknown back end: %v", err)
	}
	w := job("rw=read")
	w.Options = map[string]string{"nonsense": "1"}
	if _, err := ioengine.New().Plan(w); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("unknown option: %v", err)
	}
}
