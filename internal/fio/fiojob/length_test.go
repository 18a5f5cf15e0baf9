package fiojob_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func TestLength(t *testing.T) {
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
		least, most := fiojob.Length(file.Jobs())
		if least != c.least || most != c.most {
			t.Errorf("%q takes %v to %v, want %v to %v", c.job, least, most, c.least, c.most)
		}
	}
}
