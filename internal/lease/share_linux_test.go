package lease

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// Shared leases coexist and exclude the exclusive one; the exclusive one excludes them.
func TestPartsAndWhole(t *testing.T) {
	scope := t.TempDir()
	one, err := Share(t.Context(), scope, NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	two, err := Share(t.Context(), scope, NewHolder("run-2", 0))
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Hold(t.Context(), scope, NewHolder("run-3", 0)); !errors.As(err, &held) || held.By.Run == "run-3" {
		t.Errorf("the whole beside parts: %v", err)
	}
	for _, p := range []*Part{one, two} {
		if err := p.Unlock(); err != nil {
			t.Error(err)
		}
	}
	whole, err := Hold(t.Context(), scope, NewHolder("run-3", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Share(t.Context(), scope, NewHolder("run-4", 0)); !errors.As(err, &held) || held.By.Run != "run-3" {
		t.Errorf("a part beside the whole: %v", err)
	}
	if err := whole.Unlock(); err != nil {
		t.Error(err)
	}
	if names := listening(address(scope).Name); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}

// Of a part and the whole that are wanted at one moment, never both are had. The rounds have places of their own and mostly wait, so all of
// them run at once.
func TestPartAgainstWhole(t *testing.T) {
	const rounds = 20
	var all sync.WaitGroup
	for range rounds {
		all.Go(func() { raceForPartAndWhole(t, t.TempDir()) })
	}
	all.Wait()
}

func raceForPartAndWhole(t *testing.T, scope string) {
	var part *Part
	var whole *Held
	var errs [2]error
	var wait sync.WaitGroup
	wait.Go(func() { part, errs[0] = Share(t.Context(), scope, NewHolder("part", 0)) })
	wait.Go(func() { whole, errs[1] = Hold(t.Context(), scope, NewHolder("whole", 0)) })
	wait.Wait()
	if (part == nil) == (whole == nil) {
		t.Errorf("part %v, whole %v, %v", part, whole, errs)
	}
	var held *HeldError
	if part != nil && !errors.As(errs[1], &held) || whole != nil && !errors.As(errs[0], &held) {
		t.Errorf("%v", errs)
	}
	if part != nil {
		_ = part.Unlock()
	}
	if whole != nil {
		_ = whole.Unlock()
	}
}

// Those who share learn of each other, once each, and that the other has gone.
func TestMeetings(t *testing.T) {
	scope := t.TempDir()
	one, err := Share(t.Context(), scope, NewHolder("run-1\x1b[2J", 0))
	if err != nil {
		t.Fatal(err)
	}
	two, err := Share(t.Context(), scope, NewHolder("run-2", 0))
	if err != nil {
		t.Fatal(err)
	}
	next := func(p *Part) Meeting {
		t.Helper()
		select {
		case m := <-p.Meetings():
			return m
		case <-time.After(time.Minute):
			t.Fatal("no meeting was reported")
			return Meeting{}
		}
	}
	if m := next(one); m.With.Run != "run-2" || m.Ended || m.Uncertain != 0 {
		t.Errorf("the first got %+v", m)
	}
	if m := next(two); m.With.Run != "run-1\uFFFD[2J" || m.Ended || m.Uncertain != 0 {
		t.Errorf("the second got %+v", m)
	}
	if err := two.Unlock(); err != nil {
		t.Error(err)
	}
	if m := next(one); m.With.Run != "run-2" || !m.Ended || m.Uncertain != meetPeriod {
		t.Errorf("the first got %+v", m)
	}
	if err := one.Unlock(); err != nil {
		t.Error(err)
	}
}
