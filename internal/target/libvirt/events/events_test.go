package events

import (
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

func TestParseLifecycle(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 20, 6, 40, 123e6, time.UTC)
	for _, c := range []struct {
		line string
		want lifecycle
		ok   bool
	}{
		{"2026-11-22 20:06:40.123+0000: event 'lifecycle' for domain 'a-1': Stopped Destroyed", lifecycle{at, "a-1", "Stopped", "Destroyed"}, true},
		{"2026-11-22 22:06:40.123+0200: event 'lifecycle' for domain 'a-1': Crashed Panicked", lifecycle{at, "a-1", "Crashed", "Panicked"}, true},
		{"2026-11-22 20:06:40.123+0000: event 'lifecycle' for domain a-1: Suspended I/O Error", lifecycle{at, "a-1", "Suspended", "I/O Error"}, true},
		{"2026-11-22 20:06:40.123+0000: event 'lifecycle' for domain 'it's: Stopped': Started Booted", lifecycle{at, "it's: Stopped", "Started", "Booted"}, true},
		{"2026-11-22 20:06:40.123+0000: event 'lifecycle' for domain 'a': PMSuspended", lifecycle{at, "a", "PMSuspended", ""}, true},
		{"2026-11-22 20:06:40.123+0000: event 'reboot' for domain 'a'", lifecycle{}, false},
		{"event 'lifecycle' for domain 'a': Stopped Destroyed", lifecycle{}, false},
		{"2026-13-22 20:06:40.123+0000: event 'lifecycle' for domain 'a': Stopped Destroyed", lifecycle{}, false},
		{"event loop interrupted", lifecycle{}, false},
		{"", lifecycle{}, false},
	} {
		got, ok := parseLifecycle(c.line)
		if ok != c.ok || ok && (!got.at.Equal(c.want.at) || got.domain != c.want.domain || got.kind != c.want.kind || got.detail != c.want.detail) {
			t.Errorf("%q is %+v, %v", c.line, got, ok)
		}
	}
}

// The moment of a stop is that of the event; without an event it is uncertain by the time since the agent was last heard.
func TestMomentsOfStops(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	here, there := place{"n1", "a"}, place{"n2", "a"}
	event := func(kind, detail string) lifecycle { return lifecycle{domain: "a", kind: kind, detail: detail} }
	for _, c := range []struct {
		name      string
		hear      func(l *Listener) (gone []string)
		hangs     bool
		at        int
		uncertain time.Duration
	}{
		{"no event", func(*Listener) []string { return nil }, false, 30, 30 * time.Second},
		{"its power was cut", func(l *Listener) []string { return l.note(here, event("Stopped", "Destroyed"), at(8)) }, true, 8, 0},
		{"a panic, and then its power is cut", func(l *Listener) []string {
			l.note(here, event("Crashed", "Panicked"), at(8))
			return l.note(here, event("Stopped", "Crashed"), at(9))
		}, true, 8, 0},
		{"its storage is full", func(l *Listener) []string { return l.note(here, event("Suspended", "I/O Error"), at(8)) }, false, 8, 0},
		{"its storage was full, and it was switched off", func(l *Listener) []string {
			l.note(here, event("Suspended", "I/O Error"), at(8))
			return l.note(here, event("Stopped", "Destroyed"), at(9))
		}, true, 9, 0},
		{"a user paused it", func(l *Listener) []string { return l.note(here, event("Suspended", "Paused"), at(8)) }, false, 30, 30 * time.Second},
		{"it moved", func(l *Listener) []string { return l.note(here, event("Stopped", "Migrated"), at(8)) }, false, 30, 30 * time.Second},
		{"it moved, and was switched off there", func(l *Listener) []string {
			l.note(there, event("Resumed", "Migrated"), at(8))
			l.note(here, event("Stopped", "Migrated"), at(8))
			return l.note(there, event("Stopped", "Destroyed"), at(9))
		}, true, 9, 0},
		{"another one of the other node stopped", func(l *Listener) []string { return l.note(there, event("Stopped", "Destroyed"), at(8)) }, false, 30, 30 * time.Second},
		{"it was started again", func(l *Listener) []string {
			l.note(here, event("Stopped", "Destroyed"), at(8))
			return l.note(here, event("Started", "Booted"), at(9))
		}, false, 30, 30 * time.Second},
		{"listening ended", func(l *Listener) []string {
			gone := l.note(here, event("Stopped", "Destroyed"), at(8))
			l.forget("n1")
			return gone
		}, true, 30, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := New()
			l.Placed("id", here.host, here.domain)
			l.Placed("other", "n1", "b")
			l.Heard("id")
			l.heard["id"] = start
			gone := c.hear(l)
			if hangs := slices.Equal(gone, []string{"id"}); hangs != c.hangs || !hangs && len(gone) > 0 {
				t.Errorf("hung up on %q", gone)
			}
			var s target.StoppedError
			if l.Date(&s, "id", at(30)); !s.At.Equal(at(c.at)) || s.Uncertain != c.uncertain {
				t.Errorf("it stopped at %v, %v uncertain", s.At.Sub(start), s.Uncertain)
			}
		})
	}
}
