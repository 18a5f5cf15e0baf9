package api

import (
	"testing"
	"time"
)

// The offset of a server's clock is within the bounds that whole seconds and round trips leave, and follows a clock that is set.
func TestServerClock(t *testing.T) {
	t.Parallel()
	const ahead, trip = 95*time.Minute + 300*time.Millisecond, 40 * time.Millisecond
	var s serverClock
	if s.ahead() != 0 {
		t.Errorf("before any answer: %v", s.ahead())
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	answer := func(ahead time.Duration) {
		at = at.Add(1370 * time.Millisecond) // at various parts of a second
		s.note(at, at.Add(trip), at.Add(trip/2).Add(ahead).Truncate(time.Second))
	}
	answer(ahead)
	if off := s.ahead() - ahead; off.Abs() > time.Second/2+trip {
		t.Errorf("after one answer it is off by %v", off)
	}
	for range 100 {
		answer(ahead)
	}
	if off := s.ahead() - ahead; off.Abs() > trip {
		t.Errorf("after many answers it is off by %v", off)
	}
	const behind = -20 * time.Second
	for range 100 {
		answer(behind)
	}
	if off := s.ahead() - behind; off.Abs() > trip {
		t.Errorf("after the clock was set it is off by %v", off)
	}
}
