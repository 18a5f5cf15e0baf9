package ioengine_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// What is done in a ramp by size does not count, and everything after it does: all that was submitted once the bytes had
// been moved.
func TestRampBySize(t *testing.T) {
	const ramp, all = 64, 256 // operations of 4 KiB
	for _, c := range []struct {
		options string
		depth   uint64
	}{
		{"ioengine=psync rw=randwrite bs=4k size=1m", 1},
		{"ioengine=io_uring rw=randrw bs=4k size=1m iodepth=8 fsync=5", 8},
		{"ioengine=libaio rw=read bs=4k size=1m iodepth=4", 4},
		{"ioengine=null rw=randtrim bs=4k size=1m iodepth=2", 2},
	} {
		seen, sum, _ := observed(t, c.options+" ramp_size=256k", "", false)
		var counted, noted uint64
		for d := range seen.operations {
			counted += sum.Directions[d].Operations
			noted += seen.operations[d]
		}
		if counted > all-ramp || counted+c.depth < all-ramp+1 || noted != counted || seen.ramp != all-counted || seen.from == 0 {
			t.Errorf("%s: %d counted, %d observed, %d in the ramp of %d; from %d", c.options, counted, noted, seen.ramp, ramp, seen.from)
		}
	}
}

// The runtime begins at the end of the ramp, and so does what is due; with ramp_time too, both have to be over.
func TestRuntimeBeginsAfterTheRamp(t *testing.T) {
	for options, least := range map[string]time.Duration{
		"ramp_size=400k":                 0,
		"ramp_size=400k ramp_time=300ms": 300 * time.Millisecond,
	} {
		w := job("ioengine=null rw=randread bs=4k iodepth=32 rate_iops=2000 runtime=200ms time_based " + options)
		began := time.Now()
		sum := run(t, ioengine.New(), w)
		took := time.Since(began)
		done := sum.Directions[interval.Read].Operations
		if done+sum.NotIssued != sum.Due || sum.Due < 390 || sum.Due > 410 {
			t.Errorf("%s: %d done and %d not issued of %d, want about 400", options, done, sum.NotIssued, sum.Due)
		}
		// 100 operations at 2,000 a second take 50 ms.
		if atLeast := max(least, 49*time.Millisecond) + 199*time.Millisecond; took < atLeast {
			t.Errorf("%s: it took %s, less than %s", options, took, atLeast)
		}
	}
}

// Jobs of a group count from one moment on, when all of them together have moved the bytes; others go on in their ramps.
func TestRampOfAGroup(t *testing.T) {
	const all = "ioengine=null\nrw=randread\nbs=4k\ntime_based\nruntime=150ms\nfilename=/dev/sdb\n"
	w := job(all + "rate_iops=1000\ngroup_reporting\nramp_size=400k\nnumjobs=2\n[other]\n" + all +
		"rate_iops=1500\ngroup_reporting\nramp_size=100k\n[alone]\n" + all + "new_group\nrate_iops=1000\nramp_size=400k")
	run := prepared(t, w)
	from := map[string][]*counting{}
	run.Observe(func(job string, _ int) ioengine.Observer {
		from[job] = append(from[job], &counting{t: t})
		return from[job][len(from[job])-1]
	})
	if err := run.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err != nil {
		t.Fatal(err)
	}
	var ramp uint64
	const first = "job"
	for _, name := range []string{first, "other"} {
		for _, c := range from[name] {
			ramp += c.ramp
			if c.from != from[first][0].from || c.operations[interval.Read] == 0 {
				t.Errorf("job %s counts from %d, the first from %d; %d operations", name, c.from, from[first][0].from, c.operations[interval.Read])
			}
		}
	}
	// What was due in the ramp and done after it does not count either, so that a slow machine has more of them.
	if alone := from["alone"][0]; alone.ramp < 100 {
		t.Errorf("%d operations in the ramp of the job of no group, want 100 of its own", alone.ramp)
	}
	if len(from[first]) != 2 || ramp < 100 {
		t.Errorf("%d operations in the ramp of the group, want 100: the largest ramp_size is that of all", ramp)
	}
}

// What moves no bytes never leaves a ramp of bytes.
func TestRampOfNoBytes(t *testing.T) {
	w := files(t, job("ioengine=cpuio cpuload=10 runtime=1 ramp_size=1m"))
	file, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
	if list.HasErrors() {
		t.Fatal(list.Err())
	}
	if _, err := ioengine.New().PrepareJobs(t.Context(), w, file.Jobs()); err == nil || !strings.Contains(err.Error(), "use ramp_time") {
		t.Error(err)
	}
}

// A job that ends in its ramp has counted nothing; one whose operations all fail leaves it nevertheless.
func TestRampsEnd(t *testing.T) {
	sum := run(t, ioengine.New(), job("ioengine=null rw=randread bs=4k size=1m ramp_size=2m"))
	if sum.Directions[interval.Read].Operations != 0 {
		t.Errorf("%d operations count of a job that is shorter than its ramp", sum.Directions[interval.Read].Operations)
	}

	w := files(t, job("ioengine=psync rw=read bs=4k size=1m ramp_size=100k runtime=50ms time_based continue_on_error=all"))
	failing := prepared(t, w)
	for _, d := range w.Devices {
		if err := os.Truncate(d.Path, 0); err != nil {
			t.Fatal(err)
		}
	}
	var failed interval.Interval
	if err := failing.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) { failed.Directions[0].Add(&iv.Directions[0]) })); err != nil {
		t.Fatal(err)
	}
	if failed.Directions[0].Operations != 0 || len(failed.Directions[0].Errors) == 0 {
		t.Errorf("%d operations of an empty file, errors %v", failed.Directions[0].Operations, failed.Directions[0].Errors)
	}
}
