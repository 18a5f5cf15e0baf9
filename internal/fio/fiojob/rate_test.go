package fiojob_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

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
		if got := fiojob.WriteRate(file.Jobs()); got != want {
			t.Errorf("%q: %d bytes a second, want %d", text, got, want)
		}
	}
}
