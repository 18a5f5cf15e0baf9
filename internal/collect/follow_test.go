package collect_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// storage counts by its own clock, which is ahead, every 20 seconds, and does not answer for a while.
type storage struct {
	began  time.Time
	ahead  time.Duration
	reads  int
	silent func(since time.Duration) bool
	whole  bool          // its clock has whole seconds
	took   time.Duration // of a reading, more each time
}

func (s *storage) Collect(context.Context) (collect.Reading, error) {
	s.reads++
	since := time.Since(s.began)
	if s.silent != nil && s.silent(since) {
		return collect.Reading{}, errors.New("it is busy")
	}
	clock := time.Now().Add(s.ahead)
	at := clock.Add(-since % (20 * time.Second))
	if s.whole {
		time.Sleep(s.took * time.Duration(s.reads%5) / 5)
		clock = time.Now().Add(s.ahead).Truncate(time.Second)
	}
	return collect.Reading{Clock: clock, Samples: []collect.Sample{{
		Name: collect.OperationsRate, Labels: map[string]string{"object": "vm", "vm": "OLTP-0001", "node": "left.example.com"}, Value: 7,
		At: at,
	}}}, nil
}

func (*storage) Close() error { return nil }

func follow(t *testing.T, s *storage, length time.Duration) (samples []result.Sample, events []interval.Event) {
	t.Helper()
	s.began = time.Now()
	mapping := collect.NewMapping([]target.Node{{ID: "n1", Name: "left"}}, nil, "")
	mapping.Placed(target.VM{Name: "OLTP-0001", Group: "OLTP", NodeID: "n1"})
	f := collect.Follower{
		Source: target.Source{Name: "array", Kind: "netapp"}, Interval: 5 * time.Second, Zero: s.began, Mapping: mapping,
		Open:  func(context.Context) (collect.Collector, error) { return s, nil },
		Sink:  func(list []result.Sample) { samples = append(samples, list...) },
		Event: func(e interval.Event) { events = append(events, e) },
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	f.Run(ctx)
	return samples, events
}

// TestTimesOfTheSource: samples have the times of the source, corrected by its clock, once each.
func TestTimesOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples, events := follow(t, &storage{ahead: time.Hour}, 62*time.Second)
		var at []int64
		oldest := 0.0
		for _, s := range samples {
			switch s.Name {
			case collect.OperationsRate:
				at = append(at, s.AtNanos/1e9)
				if want := "map[instance:OLTP-0001 node:n1 object:vm source:array vm:OLTP-0001 vm_group:OLTP]"; fmt.Sprint(s.Labels) != want {
					t.Errorf("labels %v, want %s", s.Labels, want)
				}
			case collect.Age:
				oldest = max(oldest, s.Value)
			case collect.Up:
				if s.Value != 1 || s.Labels["source"] != "array" {
					t.Errorf("got %+v", s)
				}
			}
		}
		if fmt.Sprint(at) != "[0 20 40 60]" || oldest != 15 || len(events) > 0 {
			t.Errorf("times %v, oldest %v, events %v", at, oldest, events)
		}
	})
}

// TestSilentSource: a source that does not answer is tried less and less often, and reported once, with its reason.
func TestSilentSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{silent: func(since time.Duration) bool { return since > 2*time.Second && since < 200*time.Second }}
		samples, events := follow(t, s, 10*time.Minute)
		if len(events) != 2 || events[0].Kind != interval.EventSourceSilent || events[0].Error != "it is busy" || events[0].AtNanos != 5e9 ||
			events[1].Kind != interval.EventSourceBack || events[1].AtNanos-events[1].SpanNanos != 5e9 {
			t.Errorf("got %+v", events)
		}
		down, up := 0, 0
		for _, s := range samples {
			if s.Name == collect.Up {
				down, up = down+int(1-s.Value), up+int(s.Value)
			}
		}
		// 5, 10, 20, 40, 80, 140 and 200 seconds, the last of which succeeds; then every 5 seconds.
		if down != 6 || up < 80 {
			t.Errorf("%d readings failed and %d succeeded", down, up)
		}
	})
}

// TestClockOfWholeSeconds: Date headers have whole seconds, so the difference to a clock that is wrong seems to change from reading to reading by up to
// a second. A sample is recorded once all the same, and each within a second of its true time.
func TestClockOfWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{ahead: 37*time.Second + 300*time.Millisecond, whole: true, took: 700 * time.Millisecond}
		samples, _ := follow(t, s, 5*time.Minute)
		var at []float64
		for _, s := range samples {
			if s.Name == collect.OperationsRate {
				at = append(at, float64(s.AtNanos)/1e9)
			}
		}
		if len(at) != 16 {
			t.Fatalf("%d samples, want 16: %v", len(at), at)
		}
		for i, seconds := range at {
			if want := float64(20 * i); math.Abs(seconds-want) > 1 {
				t.Errorf("sample %d is at %v s, want %v", i, seconds, want)
			}
		}
	})
}
