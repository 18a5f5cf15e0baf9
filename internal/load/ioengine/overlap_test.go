package ioengine_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// flights keeps when each operation was in flight.
type flights struct{ all []ioengine.Completed }

func (f *flights) Begin(int64) {}

func (f *flights) Completed(batch []ioengine.Completed) { f.all = append(f.all, batch...) }

// overlapping counts pairs of operations that touched the same bytes at the same time.
func (f *flights) overlapping() (pairs int) {
	for i := range f.all {
		a := &f.all[i]
		for k := range f.all[:i] {
			b := &f.all[k]
			if a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size && a.Submitted < b.Completed && b.Submitted < a.Completed {
				pairs++
			}
		}
	}
	return pairs
}

// With serialize_overlap no two operations touch the same bytes at the same time, and all that were due are done; without
// it many do, so that the test sees what it looks for.
func TestOverlapsAreSerialized(t *testing.T) {
	for options, want := range map[string]bool{
		"serialize_overlap=1":                                     false,
		"serialize_overlap=1 rate_iops=20000":                     false,
		"serialize_overlap=1 bssplit=4k/50:64k/50 number_ios=600": false,
		"serialize_overlap=0":                                     true,
	} {
		w := files(t, job("ioengine=io_uring rw=randrw bs=16k iodepth=16 size=256k io_size=16m norandommap "+options))
		run := prepared(t, w)
		seen := &flights{}
		run.Observe(func(string, int) ioengine.Observer { return seen })
		var sum interval.Interval
		err := run.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) {
			sum.Due += iv.Due
			sum.NotIssued += iv.NeverIssued()
			for d := range iv.Directions {
				sum.Directions[d].Add(&iv.Directions[d])
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := seen.overlapping() > 0; got != want {
			t.Errorf("%s: %d pairs of %d operations overlap", options, seen.overlapping(), len(seen.all))
		}
		done := sum.Directions[0].Operations + sum.Directions[1].Operations
		if done < 400 || sum.Due > 0 && sum.Due != done+sum.NotIssued {
			t.Errorf("%s: %d done, %d due, %d not issued", options, done, sum.Due, sum.NotIssued)
		}
	}
}
