package clock

import (
	"net/http"
	"testing"
	"time"
)

// The offset of a server's clock is within the bounds that whole seconds and round trips leave, and follows a clock that is set.
func TestDates(t *testing.T) {
	t.Parallel()
	const ahead, trip = 95*time.Minute + 300*time.Millisecond, 40 * time.Millisecond
	var d Dates
	if d.Ahead() != 0 {
		t.Errorf("before any answer: %v", d.Ahead())
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	answer := func(ahead time.Duration) {
		at = at.Add(1370 * time.Millisecond) // at various parts of a second
		shown := at.Add(trip / 2).Add(ahead)
		d.Add(at, at.Add(trip), http.Header{"Date": {shown.Format(http.TimeFormat)}})
	}
	answer(ahead)
	if off := d.Ahead() - ahead; off.Abs() > time.Second/2+trip {
		t.Errorf("after one answer it is off by %v", off)
	}
	for range 100 {
		answer(ahead)
	}
	d.Add(at, at, http.Header{})
	if off := d.Ahead() - ahead; off.Abs() > trip {
		t.Errorf("after many answers it is off by %v", off)
	}
	const behind = -20 * time.Second
	for range 100 {
		answer(behind)
	}
	if off := d.Ahead() - behind; off.Abs() > trip {
		t.Errorf("after the clock was set it is off by %v", off)
	}
}
