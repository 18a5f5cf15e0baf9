package bmc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// machine is a node with its BMC, simulated, and everything that can be wrong with them.
type machine struct {
	mu        sync.Mutex
	on        bool
	delay     time.Duration // from an accepted command to its effect
	answer    time.Duration // how long each answer takes
	deaf      bool          // commands are accepted and nothing happens
	hang      bool          // no answer ever
	switchErr error         // of commands
	stateErr  error         // of readings
	between   bool          // the BMC says neither on nor off
	failing   int           // how many requests fail before one is answered
	storm     time.Duration // how often the power toggles by itself
	identity  Identity

	asked, commands, logins int
}

// wait takes the time of an answer.
func (m *machine) wait(ctx context.Context) error {
	m.mu.Lock()
	m.asked++
	failing := m.failing > 0
	m.failing = max(0, m.failing-1)
	d := m.answer
	if m.hang {
		d = 1000 * time.Hour
	}
	m.mu.Unlock()
	if d > 0 && wait.For(ctx, d) != nil {
		return ended(ctx, "left", "ask")
	}
	if failing {
		return fault(CodeUnreachable, "left", "ask", errors.New("connection reset by peer"))
	}
	return ctx.Err()
}

func (m *machine) State(ctx context.Context) (target.PowerState, error) {
	if err := m.wait(ctx); err != nil {
		return target.PowerUnknown, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if codeOf(m.stateErr) == CodeLogin {
		m.logins++
	}
	switch {
	case m.stateErr != nil:
		return target.PowerUnknown, m.stateErr
	case m.between:
		return target.PowerUnknown, nil
	case m.on != (m.storm > 0 && time.Now().UnixNano()/int64(m.storm)%2 == 0):
		return target.PowerOn, nil
	}
	return target.PowerOff, nil
}

func (m *machine) set(ctx context.Context, on bool) error {
	if err := m.wait(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands++
	if m.switchErr != nil || m.deaf {
		return m.switchErr
	}
	if m.delay > 0 {
		time.AfterFunc(m.delay, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.on = on
		})
		return nil
	}
	m.on = on
	return nil
}

func (m *machine) On(ctx context.Context) error   { return m.set(ctx, true) }
func (m *machine) Off(ctx context.Context) error  { return m.set(ctx, false) }
func (m *machine) Soft(ctx context.Context) error { return m.set(ctx, false) }
func (m *machine) Identity(ctx context.Context) (Identity, error) {
	return m.identity, m.wait(ctx)
}

var errGarbage = fault(CodeGarbage, "left", "ask", errors.New(`"<html>"`))

// The faults of a BMC, one by one. An operation ends within its timeout, and never says what was not read back.
func TestMisbehaviour(t *testing.T) {
	const timeout = 2 * time.Minute
	for name, c := range map[string]struct {
		machine   *machine
		act       func(*Switch, context.Context) error
		code      string // "": it succeeds
		exit      int
		within    time.Duration
		commands  int
		wantOn    bool
		commands2 int // another number of commands that is right too
	}{
		"off":                     {&machine{on: true}, (*Switch).Off, "", 0, 10 * time.Second, 1, false, 0},
		"on":                      {&machine{}, (*Switch).On, "", 0, 50 * time.Second, 1, true, 0},
		"shut down":               {&machine{on: true, delay: 5 * time.Minute}, (*Switch).Soft, "", 0, 6 * time.Minute, 1, false, 0},
		"already off":             {&machine{}, (*Switch).Off, "", 0, 10 * time.Second, 0, false, 0},
		"already on":              {&machine{on: true}, (*Switch).On, "", 0, 50 * time.Second, 0, true, 0},
		"30 s delay":              {&machine{on: true, delay: 30 * time.Second}, (*Switch).Off, "", 0, 40 * time.Second, 1, false, 0},
		"30 s delay, on":          {&machine{delay: 30 * time.Second}, (*Switch).On, "", 0, 50 * time.Second, 1, true, 0},
		"first answers are lost":  {&machine{on: true, failing: 3}, (*Switch).Off, "", 0, 15 * time.Second, 1, false, 0},
		"slow":                    {&machine{on: true, answer: 10 * time.Second}, (*Switch).Off, "", 0, time.Minute, 1, false, 0},
		"ok without effect":       {&machine{on: true, deaf: true}, (*Switch).Off, CodeNoEffect, 69, timeout, 3, true, 0},
		"ok without effect, on":   {&machine{deaf: true}, (*Switch).On, CodeNoEffect, 69, timeout, 3, false, 0},
		"ok without effect, soft": {&machine{on: true, deaf: true}, (*Switch).Soft, CodeNoEffect, 69, 10 * time.Minute, 1, true, 0},
		"hang":                    {&machine{on: true, hang: true}, (*Switch).Off, CodeUnreachable, 69, timeout, 0, true, 0},
		"too slow to answer":      {&machine{on: true, answer: time.Minute}, (*Switch).Off, CodeUnreachable, 69, timeout, 0, true, 0},
		"wrong password":          {&machine{on: true, stateErr: fault(CodeLogin, "left", "ask", nil)}, (*Switch).Off, CodeLogin, 69, time.Second, 0, true, 0},
		"not permitted":           {&machine{on: true, switchErr: fault(CodeForbidden, "left", "cut", nil)}, (*Switch).Off, CodeForbidden, 69, time.Second, 1, true, 0},
		"wrong certificate":       {&machine{on: true, stateErr: fault(CodeCertificate, "left", "ask", nil)}, (*Switch).Off, CodeCertificate, 77, time.Second, 0, true, 0},
		"refuses":                 {&machine{on: true, switchErr: fault(CodeRefused, "left", "cut", errors.New("busy"))}, (*Switch).Off, CodeRefused, 69, timeout, 3, true, 0},
		"garbage":                 {&machine{on: true, stateErr: errGarbage}, (*Switch).Off, CodeGarbage, 69, timeout, 0, true, 0},
		"garbage, on":             {&machine{stateErr: errGarbage}, (*Switch).On, CodeGarbage, 69, timeout, 3, true, 0},
		"neither on nor off":      {&machine{on: true, between: true}, (*Switch).Off, CodeNoEffect, 69, timeout, 0, true, 0},
		"resets over and over":    {&machine{on: true, storm: 2 * time.Second}, (*Switch).Off, CodeUnsteady, 69, timeout, 3, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSwitch("left", c.machine, Options{})
				start := time.Now()
				err := c.act(s, t.Context())
				if took := time.Since(start); took > c.within {
					t.Errorf("it took %v, want at most %v", took, c.within)
				}
				if codeOf(err) != c.code || (err == nil) != (c.code == "") {
					t.Errorf("got %v, want %q", err, c.code)
				}
				var userErr *diag.Error
				if errors.As(err, &userErr) && (userErr.Exit != c.exit || userErr.Hint == "" && userErr.Code != CodeRefused && userErr.Code != CodeCertificate) {
					t.Errorf("exit code %d, hint %q", userErr.Exit, userErr.Hint)
				}
				if n := c.machine.commands; n != c.commands && (c.commands2 == 0 || n > c.commands || n < c.commands2) {
					t.Errorf("%d commands, want %d", n, c.commands)
				}
				if c.machine.on != c.wantOn {
					t.Errorf("the node is on: %v", c.machine.on)
				}
				time.Sleep(time.Hour) // timers of the machine
			})
		})
	}
}

// A cut whose command came back as lost may still come to pass. Powering on does not believe the node until it cannot.
func TestLateCutIsNotMistakenForOn(t *testing.T) {
	for _, delay := range []time.Duration{5 * time.Second, 20 * time.Second, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{on: true, delay: delay}
			s := NewSwitch("left", m, Options{Timeout: 2 * time.Minute})
			time.Sleep(time.Hour) // whatever was sent before this Switch was made is over
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if err := s.Off(ctx); err == nil {
				t.Fatalf("off before it could be")
			}
			m.mu.Lock()
			m.delay = 0
			m.mu.Unlock()
			if err := s.On(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if !m.on {
				t.Errorf("delay %v: powered on, and off an hour later", delay)
			}
		})
	}
}

// The same when this program was killed after it sent the cut, and a new one powers on.
func TestLateCutOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{on: true, delay: 30 * time.Second}
		if err := m.Off(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.delay = 0
		if err := NewSwitch("left", m, Options{}).On(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !m.on {
			t.Error("powered on, and off an hour later")
		}
	})
}

// A node that was seen on and could not be read afterwards is not on.
func TestUnreadIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{}
		s := NewSwitch("left", m, Options{})
		go func() {
			time.Sleep(2500 * time.Millisecond) // before it settled
			m.mu.Lock()
			m.hang = true
			m.mu.Unlock()
		}()
		if err := s.Off(t.Context()); codeOf(err) != CodeUnreachable {
			t.Errorf("got %v", err)
		}
		if state, err := s.State(t.Context()); err == nil || state != target.PowerUnknown {
			t.Errorf("got %s, %v", state, err)
		}
	})
}

// Repeated polling of the state does not lock the user out of the BMC.
func TestLoginPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{stateErr: fault(CodeLogin, "left", "ask", nil)}
		s := NewSwitch("left", m, Options{})
		for range 600 {
			if _, err := s.State(t.Context()); codeOf(err) != CodeLogin {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if m.logins > 11 {
			t.Errorf("%d logins in ten minutes", m.logins)
		}
		m.stateErr = nil
		time.Sleep(time.Minute)
		if _, err := s.State(t.Context()); err != nil {
			t.Errorf("the right password is refused: %v", err)
		}
	})
}

// A reading ends in time and is tried three times; a cancelled caller gets its own cause.
func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{on: true, failing: 2}
		s := NewSwitch("left", m, Options{})
		if state, err := s.State(t.Context()); err != nil || state != target.PowerOn || m.asked != 3 {
			t.Errorf("got %s, %v after %d requests", state, err, m.asked)
		}
		m.failing = 100
		if _, err := s.Identity(t.Context()); codeOf(err) != CodeUnreachable || m.asked != 6 {
			t.Errorf("got %v after %d requests", err, m.asked)
		}
		m.hang = true
		start := time.Now()
		if _, err := s.State(t.Context()); codeOf(err) != CodeUnreachable || time.Since(start) > 30*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		if err := s.Off(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// One after the other speaks to a BMC, and waiting for one's turn counts as time.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{on: true, hang: true}
		s := NewSwitch("left", m, Options{})
		done := make(chan error)
		go func() { done <- s.Off(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		if _, err := s.State(t.Context()); codeOf(err) != CodeUnreachable || time.Since(start) > 30*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		<-done
	})
}

// TestMomentOfACut: two nodes get the command at the same moment although one takes longer to be checked. The reported power
// loss is the first reading of off, not the end of the confirmation.
func TestMomentOfACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := target.NewGate(2)
		changes := make([]target.PowerChange, 2)
		var wait sync.WaitGroup
		for i := range changes {
			wait.Go(func() {
				ctx, leave := target.WithGate(t.Context(), gate)
				defer leave()
				ctx = target.WithPowerChange(ctx, func(c target.PowerChange) { changes[i] = c })
				s := NewSwitch("node", &machine{on: true, answer: 100 * time.Millisecond}, Options{})
				time.Sleep(time.Duration(i) * 5 * time.Second) // checks
				if err := s.Off(ctx); err != nil {
					t.Error(err)
				}
				if now := time.Now(); now.Sub(changes[i].Seen) < 3*time.Second {
					t.Errorf("reported %+v at %v", changes[i], now)
				}
			})
		}
		wait.Wait()
		if d := changes[1].Sent.Sub(changes[0].Sent).Abs(); d > 0 {
			t.Errorf("the commands were %v apart", d)
		}
		for _, c := range changes {
			if c.Before.Before(c.Sent) || !c.Seen.After(c.Before) || c.Seen.Sub(c.Sent) > 2*time.Second {
				t.Errorf("%+v", c)
			}
		}
	})
}
