package region_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
)

func TestTakes(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		job         string
		least, most time.Duration
	}{
		{"size=64m\n", 0, 0},
		{"size=64m\nrate_iops=100\n", 163840 * time.Millisecond, 0},
		{"size=64m\nrate_iops=100\nnumjobs=4\n", 163840 * time.Millisecond, 0},
		{"size=64m\nrate=1m\n", 64 * second, 0},
		{"rw=randrw\nsize=64m\nrate_iops=100,300\n", 40960 * time.Millisecond, 0},
		{"rw=randrw\nsize=64m\nrate_iops=,300\n", 0, 0}, // reads are free
		{"size=64m\nrate_iops=100\nnumber_ios=500\n", 5 * second, 0},
		{"size=64m\nrate_iops=100\nloops=2\n", 327680 * time.Millisecond, 0},
		{"size=64m\nruntime=4\n", 0, 4 * second},
		{"size=64m\nruntime=4\ntime_based\n", 4 * second, 4 * second},
		{"size=64m\nrate_iops=100\nruntime=4\n", 4 * second, 4 * second},
		{"size=64m\nruntime=4\ntime_based\nstartdelay=2\n", 6 * second, 6 * second},
		{"size=64m\nruntime=4\ntime_based\n[b]\nfilename=/dev/sdb\nsize=1m\n", 4 * second, 0},
		{"size=64m\nruntime=4\ntime_based\n[b]\nfilename=/dev/sdb\nsize=1m\nstonewall\nruntime=5\ntime_based\n", 9 * second, 9 * second},
	} {
		file, list := fiojob.Parse("a.fio", "[a]\nfilename=/dev/sdb\nbs=4k\n"+c.job, fiojob.Options{})
		if list.HasErrors() {
			t.Fatal(list)
		}
		least, most := region.Takes(file.Jobs())
		if least != c.least || most != c.most {
			t.Errorf("%q takes %v to %v, want %v to %v", c.job, least, most, c.least, c.most)
		}
	}
}

// The rate of writing adds up over clones and jobs, counts the largest block, and is none as soon as one job writes freely.
func TestWriteRate(t *testing.T) {
	for text, want := range map[string]int64{
		"[a]\nrw=randwrite\nbs=8k\nrate_iops=100\n":                                       100 * 8192,
		"[a]\nrw=randrw\nbssplit=8k/90:32k/10\nrate_iops=100,50\nnumjobs=3\n":             3 * 50 * 32768,
		"[a]\nrw=write\nbs=1m\nrate=10m\n[b]\nrw=randread\n":                              10 << 20,
		"[a]\nrw=write\nbs=1m\nrate=10m\ntime_based\nruntime=5\n[b]\nrw=write\nsize=1m\n": 0,
		"[a]\nrw=randread\nrate_iops=100\n":                                               0,
	} {
		file, issues := fiojob.Parse("a.fio", text, fiojob.Options{})
		if issues.HasErrors() {
			t.Fatalf("%s: %v", text, issues)
		}
		if got := region.WriteRate(file.Jobs()); got != want {
			t.Errorf("%q: %d bytes a second, want %d", text, got, want)
		}
	}
}

// A load counts nothing as long as all jobs of its beginning are in their ramps.
func TestRamp(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"[a]\nramp_time=8\n": 8 * time.Second,
		"[a]\nramp_time=8\n[b]\nramp_time=3\nstartdelay=2\n": 5 * time.Second,
		"[a]\nramp_time=8\n[b]\nstartdelay=9\n":              0,
		"[a]\nramp_time=8\n[b]\nstonewall\n":                 8 * time.Second,
		"[a]\nramp_size=8m\n":                                0,
		"[a]\nrw=read\n":                                     0,
	} {
		file, issues := fiojob.Parse("ramp.fio", text, fiojob.Options{})
		if err := issues.Err(); err != nil {
			t.Fatal(err)
		}
		if got := region.Ramp(file.Jobs()); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
