package stats

import (
	"testing"
	"time"
)

// seconds has the second of the minute as every figure.
type seconds struct{}

func (seconds) Value(_ Entity, metric string, at time.Time) (float64, bool) {
	return float64(at.Second()), metric != "absent"
}

func TestRead(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
	for kind, want := range map[string]float64{"SUM": 145, "MIN": 10, "MAX": 19, "AVG": 14.5, "COUNT": 10, "LAST": 19} {
		q := Query{Start: start, End: start.Add(30 * time.Second), Interval: 10 * time.Second, Type: kind, Now: time.Now()}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		// Intervals begin at multiples of their length: those from :10 and :20 are whole.
		got := Read(seconds{}, Entity{}, "x", q)
		if len(got) != 2 || got[0].Value != want || !got[0].At.Equal(start.Add(5*time.Second)) {
			t.Errorf("%s: %v, want %v first", kind, got, want)
		}
		if got := Read(seconds{}, Entity{}, "absent", q); got != nil {
			t.Errorf("what is absent: %v", got)
		}
	}
	now := time.Now()
	if got := Read(seconds{}, Entity{}, "x", Query{Start: now, End: now.Add(time.Hour), Interval: time.Second, Type: "AVG"}); len(got) > 1 {
		t.Errorf("%d samples of the future", len(got))
	}
	for _, q := range []Query{
		{}, {Start: now, End: now, Interval: time.Second, Type: "AVG"}, {Start: now, End: now.Add(time.Hour), Type: "AVG"},
		{Start: now, End: now.Add(time.Hour), Interval: time.Second, Type: "MEAN"}, {Start: now, End: now.Add(9999 * time.Hour), Interval: time.Second, Type: "AVG"},
	} {
		if q.Check() == nil {
			t.Errorf("%+v is accepted", q)
		}
	}
	a, _ := Simulated{}.Value(Entity{VM, "1"}, "controllerNumIops", now)
	b, _ := Simulated{}.Value(Entity{VM, "1"}, "controllerNumIops", now)
	reads, _ := Simulated{}.Value(Entity{VM, "1"}, "controllerNumReadIops", now)
	writes, _ := Simulated{}.Value(Entity{VM, "1"}, "controllerNumWriteIops", now)
	if a != reads+writes {
		t.Errorf("%v operations are not %v reads and %v writes", a, reads, writes)
	}
	if a != b || a <= 0 {
		t.Errorf("the same second has %v and %v", a, b)
	}
}
