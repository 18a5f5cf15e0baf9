package session

import (
	"strings"
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	begin := pulse{running: time.Now(), asleep: time.Hour}
	for name, c := range map[string]struct {
		running, asleep time.Duration
		want            string
	}{
		"nothing":        {pulseEvery, 0, ""},
		"a busy machine": {2 * time.Second, 0, ""},
		"stopped":        {62 * time.Second, 0, "1 m 2 s: it was stopped"},
		"asleep":         {pulseEvery, 10 * time.Minute, "its machine slept"},
	} {
		// The run's axis stops while the machine sleeps: the span on it excludes that time.
		e, paused := pauseBetween(begin, pulse{begin.running.Add(c.running), begin.asleep + c.asleep})
		if paused != (c.want != "") || !strings.Contains(e.Message, c.want) || paused && e.SpanNanos != int64(c.running) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
