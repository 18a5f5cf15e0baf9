package client

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/clock"
)

// simulatedClock is an agent's uptime as a function of our time: it began ahead, drifts, and stood still for a while.
type simulatedClock struct {
	zero       time.Time
	ahead      time.Duration
	drift      float64
	stoodStill time.Duration
	since      time.Duration // when it stood still, on our axis
}

func (c simulatedClock) uptime(at time.Duration) int64 {
	passed := at
	if at > c.since && c.stoodStill > 0 {
		passed = at - min(c.stoodStill, at-c.since)
	}
	return int64(c.ahead) + int64((1+c.drift)*float64(passed))
}

func (c simulatedClock) exchange(random *rand.Rand, at time.Duration) clock.Reading {
	there, back := time.Duration(random.ExpFloat64()*2e6), time.Duration(random.ExpFloat64()*2e6)
	trip := there + back
	return clock.Reading{At: c.zero.Add(at + trip/2), Trip: trip, MonoNanos: c.uptime(at + there)}
}

// TestPlacementFollowsDrift: whatever an agent's clock shows and however it drifts, its moments are placed within the error of an
// exchange, while an axis that was set once would be off by the drift of all the time.
func TestPlacementFollowsDrift(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		c := simulatedClock{zero: time.Now(), ahead: time.Duration(random.Int64N(int64(1000 * time.Hour))), drift: (2*random.Float64() - 1) * 100e-6}
		a := axis{zero: c.zero}
		at := time.Duration(0)
		worst := time.Duration(0)
		for range 360 { // an hour
			a.add(c.exchange(random, at))
			for range 10 {
				at += time.Second
				worst = max(worst, time.Duration(a.place(c.uptime(at))-int64(at)).Abs())
			}
		}
		const want = 20 * time.Millisecond // half of a slow trip, and ten seconds' drift
		if worst > want {
			t.Errorf("a clock that drifts by %.0f ppm is misplaced by up to %v", c.drift*1e6, worst)
		}
	}
}

// TestNoiseMovesNothing: as long as what is measured agrees with what was known, the axis stays where it is.
func TestNoiseMovesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	c := simulatedClock{zero: time.Now(), ahead: time.Hour}
	a := axis{zero: c.zero}
	a.add(c.exchange(random, 0))
	for i := range 1000 {
		a.add(c.exchange(random, time.Duration(i+1)*time.Second))
	}
	first, last := a.marks[0].shift, a.marks[len(a.marks)-1].shift
	if moved := time.Duration(last - first).Abs(); moved > 10*time.Millisecond {
		t.Errorf("the axis moved by %v", moved)
	}
	before := a.place(c.uptime(2000 * time.Second))
	r := c.exchange(random, 2000*time.Second)
	r.Trip = 2 * time.Second // an exchange that knows little changes nothing
	a.add(r)
	if a.place(c.uptime(2000*time.Second)) != before {
		t.Error("a slow exchange moved the axis")
	}
}

// TestPausedVMIsPlacedBehindItsPause: a VM that stood still for five seconds is five seconds behind from then on, and what it did
// before stays where it was.
func TestPausedVMIsPlacedBehindItsPause(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	c := simulatedClock{zero: time.Now(), ahead: time.Minute, stoodStill: 5 * time.Second, since: 61 * time.Second}
	a := axis{zero: c.zero}
	for at := time.Duration(0); at < 3*time.Minute; at += 10 * time.Second {
		a.add(c.exchange(random, at))
	}
	for _, at := range []time.Duration{30 * time.Second, 59 * time.Second, 90 * time.Second, 170 * time.Second} {
		if wrong := time.Duration(a.place(c.uptime(at)) - int64(at)).Abs(); wrong > 20*time.Millisecond {
			t.Errorf("%v is misplaced by %v", at, wrong)
		}
	}
}

// TestPlacedIntervalsFollowEachOther: what follows without a gap still does, and no length is negative, whatever the axis does.
func TestPlacedIntervalsFollowEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		c := simulatedClock{zero: time.Now(), ahead: time.Hour, drift: (2*random.Float64() - 1) * 100e-6,
			stoodStill: time.Duration(random.Int64N(int64(20 * time.Second))), since: 20 * time.Second}
		a := axis{zero: c.zero}
		a.add(c.exchange(random, 0))
		zero, known := a.zeroUptime()
		if !known {
			t.Fatal("the axis is not known")
		}
		p := placer{axis: &a, zero: zero}
		raw, end := int64(3e8), int64(0)
		for i := range 60 {
			if i%10 == 9 {
				a.add(c.exchange(random, time.Duration(i)*time.Second))
			}
			length := int64(1e9)
			if random.IntN(20) == 0 {
				raw += 5e8 // a gap
			}
			start, placed := p.stretch(raw, length)
			if placed < 0 || start < end {
				t.Fatalf("interval %d is placed at %d for %d, behind one that ended at %d", i, start, placed, end)
			}
			raw, end = raw+length, start+placed
		}
	}
}

func TestAxisForgetsWhatIsOld(t *testing.T) {
	c := simulatedClock{zero: time.Now()}
	a := axis{zero: c.zero}
	random := rand.New(rand.NewPCG(9, 10))
	for i := range 10 * marksMax {
		a.add(c.exchange(random, time.Duration(i)*time.Second))
	}
	if len(a.marks) > marksMax {
		t.Errorf("%d marks are kept", len(a.marks))
	}
	var unused axis
	unused.add(c.exchange(random, 0))
	if _, known := unused.zeroUptime(); known {
		t.Error("an axis without a zero is used")
	}
}

func TestClockOffset(t *testing.T) {
	for name, tt := range map[string]struct {
		offset, trip time.Duration
		want         int64
	}{
		"same clock":    {10, 100, 0},
		"edge of noise": {50, 100, 0},
		"ahead":         {50_000, 100, 50_000},
		"behind":        {-50_000, 100, -50_000},
	} {
		if got := clockOffset(tt.offset, tt.trip); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// The clock of this machine, as an agent shows it, has no offset to itself.
func TestOwnClockHasNoOffset(t *testing.T) {
	c := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, wire.Hello{Protocol: wire.Version, Boot: "1", UnixNanos: time.Now().UnixNano()})
	}, Options{})
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if offset := c.offset.Load(); offset != 0 {
		t.Errorf("one clock has an offset of %d ns to itself", offset)
	}
}
