package iohosts

import (
	"math/rand/v2"
	"testing"
	"time"
)

// However far a clock is off, however it drifts and whichever way the network is slow, it is where it is said to be.
func TestClockIsWithinItsUncertainty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var c hostClock
		zero := time.Now()
		drift := 1 + (2*random.Float64()-1)*driftMax
		ahead := int64(random.IntN(1e12)) - 5e11
		shown := func(at time.Time) int64 { return ahead + int64(drift*float64(at.Sub(zero))) }
		now := zero
		for range 100 {
			now = now.Add(time.Duration(random.IntN(2e9)))
			there, back := time.Duration(random.ExpFloat64()*1e6), time.Duration(random.ExpFloat64()*1e6)
			asked := now.Add(there)
			c.add(now, asked.Add(back), &pong{MonoNanos: shown(asked), WallNanos: asked.UnixNano() + ahead})
			now = asked.Add(back)
		}
		later := now.Add(time.Duration(random.IntN(5e9)))
		r, ok := c.best(now)
		if !ok {
			t.Fatal("no answer")
		}
		if wrong := time.Duration(r.onHost(later) - shown(later)).Abs(); wrong > r.uncertainty(later)+time.Microsecond {
			t.Errorf("the clock is wrong by %v, and ±%v is said", wrong, r.uncertainty(later))
		}
		if wrong := (r.offset - time.Duration(ahead)).Abs(); wrong > r.trip/2+time.Microsecond {
			t.Errorf("the offset is wrong by %v, and ±%v is said", wrong, r.trip/2)
		}
	}
}

func TestOldAnswersAreForgotten(t *testing.T) {
	var c hostClock
	if _, ok := c.best(time.Now()); ok {
		t.Error("a clock is known that nobody asked")
	}
	begun := time.Now()
	for i := range 1000 {
		at := begun.Add(time.Duration(i) * time.Second)
		c.add(at, at.Add(time.Millisecond), &pong{})
	}
	if n := len(c.readings); n > int(clockAgeMax/time.Second)+1 {
		t.Errorf("%d answers are kept", n)
	}
}
