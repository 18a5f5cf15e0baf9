package program_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Operations that arrive in any order are all in one interval each, and intervals follow each other without a gap.
func TestRecorderKeepsEveryOperation(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var got []interval.Interval
		r := &program.Recorder{Workload: load.Workload{Name: "W", IntervalLength: 100 * time.Millisecond},
			Sink: load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) }), Rated: seed%2 == 0}
		begin := random.Int64N(int64(time.Hour))
		r.Begin(begin)
		now, counted := begin, uint64(0)
		for range 300 {
			now += random.Int64N(int64(50 * time.Millisecond))
			o := program.Operation{Kind: random.IntN(3), End: now - random.Int64N(int64(time.Second)), Latency: random.Int64N(int64(time.Second)), Bytes: 512}
			o.Lag = random.Int64N(o.Latency + 1)
			switch random.IntN(10) {
			case 0:
				o.Skipped = true
			case 1:
				o.Failed = "deadlock"
			}
			if r.Add(o); random.IntN(4) == 0 {
				r.Release(now - int64(500*time.Millisecond))
			}
			if random.IntN(50) == 0 {
				if from := now - random.Int64N(int64(400*time.Millisecond)); random.IntN(2) == 0 {
					r.Spread(1, from, now, 7, 7*512)
				} else {
					r.Count(1, now, 7, 7*512)
				}
				r.CountFailed(1, now, "ignored", 2)
				counted += 7
			}
		}
		r.Finish(now)
		var done, bytes, failed, skipped, due uint64
		at := got[0].StartNanos
		for i, iv := range got {
			if iv.Sequence != int64(i) || iv.StartNanos != at || iv.LengthNanos <= 0 || iv.Final != (i == len(got)-1) {
				t.Fatalf("seed %d: interval %d of %d: %+v, want a start at %d", seed, i, len(got), iv, at)
			}
			at = iv.EndNanos()
			for k := range iv.Directions {
				d := &iv.Directions[k]
				done, bytes, failed = done+d.Operations, bytes+d.Bytes, failed+d.ErrorCount()
			}
			skipped, due = skipped+iv.NotIssued, due+iv.Due
		}
		if done != r.Done || bytes != 512*done || failed != r.Failed || skipped != r.Skipped || r.Rated && due != 300+counted {
			t.Fatalf("seed %d: %d done, %d failed, %d skipped, %d due, and the totals are %d, %d, %d", seed, done, failed, skipped, due, r.Done, r.Failed, r.Skipped)
		}
	}
}

// What was completed at a constant rate is in every interval of its time, by the time that it has of it.
func TestRecorderSpreads(t *testing.T) {
	var got []interval.Interval
	r := &program.Recorder{Workload: load.Workload{Name: "W"}, Sink: load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) })}
	r.Begin(0)
	r.Spread(0, int64(500*time.Millisecond), int64(3*time.Second), 250, 1000)
	r.Spread(0, int64(3*time.Second), int64(3*time.Second), 3, 7) // in no time
	r.Finish(int64(4 * time.Second))
	want := [][2]uint64{{50, 200}, {100, 400}, {100, 400}, {3, 7}}
	if len(got) != len(want) {
		t.Fatalf("%d intervals", len(got))
	}
	for i, iv := range got {
		if d := iv.Directions[0]; d.Operations != want[i][0] || d.Bytes != want[i][1] {
			t.Errorf("interval %d: %d operations, %d bytes, want %v", i, d.Operations, d.Bytes, want[i])
		}
	}
}

// The time in which a program starts and connects is in no interval, however many it would have filled.
func TestRecorderBeginsWithTheFirstOperation(t *testing.T) {
	for _, late := range []bool{false, true} {
		var got []interval.Interval
		r := &program.Recorder{Workload: load.Workload{Name: "W"}, Sink: load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) })}
		r.Begin(int64(500 * time.Millisecond))
		r.Effort(100*time.Millisecond, interval.Effort{}, int64(600*time.Millisecond))
		r.Add(program.Operation{End: int64(3500 * time.Millisecond), Latency: int64(200 * time.Millisecond)})
		if !late {
			r.Release(int64(4 * time.Second))
		}
		r.Add(program.Operation{End: int64(4500 * time.Millisecond), Latency: int64(100 * time.Millisecond)})
		r.Finish(int64(5 * time.Second))
		if len(got) != 2 || got[0].StartNanos != int64(3300*time.Millisecond) || got[0].Sequence != 0 || got[0].CPUNanos != int64(100*time.Millisecond) ||
			got[1].StartNanos != int64(4*time.Second) || !got[1].Final {
			t.Errorf("late %v: %+v", late, got)
		}
	}
}
