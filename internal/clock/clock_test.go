package clock

import (
	"math/rand/v2"
	"testing"
	"time"
)

// However far a clock is off, however it drifts and whichever way the network is slow, it is where it is said to be.
func TestClockIsWithinItsUncertainty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var f Filter
		zero := time.Now()
		drift := 1 + (2*random.Float64()-1)*driftMax
		ahead := int64(random.IntN(1e12)) - 5e11
		shown := func(at time.Time) int64 { return ahead + int64(drift*float64(at.Sub(zero))) }
		now := zero
		for range 100 {
			now = now.Add(time.Duration(random.IntN(2e9)))
			there, back := time.Duration(random.ExpFloat64()*1e6), time.Duration(random.ExpFloat64()*1e6)
			asked := now.Add(there)
			f.Add(now, asked.Add(back), shown(asked), asked.UnixNano()+ahead)
			now = asked.Add(back)
		}
		later := now.Add(time.Duration(random.IntN(5e9)))
		r, ok := f.Best(now)
		if !ok {
			t.Fatal("no answer")
		}
		if wrong := time.Duration(r.There(later) - shown(later)).Abs(); wrong > r.Uncertainty(later)+time.Microsecond {
			t.Errorf("the clock is wrong by %v, and ±%v is said", wrong, r.Uncertainty(later))
		}
		if wrong := (r.Offset - time.Duration(ahead)).Abs(); wrong > r.Trip/2+time.Microsecond {
			t.Errorf("the offset is wrong by %v, and ±%v is said", wrong, r.Trip/2)
		}
	}
}

func TestOldAnswersAreForgotten(t *testing.T) {
	var f Filter
	if _, ok := f.Best(time.Now()); ok {
		t.Error("a clock is known that was never queried")
	}
	begun := time.Now()
	for i := range 1000 {
		at := begun.Add(time.Duration(i) * time.Second)
		f.Add(at, at.Add(time.Millisecond), 0, 0)
	}
	if n := len(f.readings); n > int(ageMax/time.Second)+1 {
		t.Errorf("%d answers are kept", n)
	}
	f.Forget()
	if _, ok := f.Best(time.Now()); ok {
		t.Error("a clock that was forgotten is known")
	}
}

func TestAheadCoversTheSlowest(t *testing.T) {
	for _, slowest := range []time.Duration{0, time.Millisecond, 400 * time.Millisecond} {
		if got := Ahead(slowest, 50); got < 2*slowest || got < aheadMin {
			t.Errorf("a round trip of %v gives a lead of %v", slowest, got)
		}
	}
	if Ahead(0, 1000) <= Ahead(0, 10) {
		t.Error("a thousand peers have the same lead as ten")
	}
}
