package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// Options of a Switch. Zero fields get the defaults.
type Options struct {
	Timeout     time.Duration // of On and Off
	SoftTimeout time.Duration // of Soft: an operating system may take longer
	ReadTimeout time.Duration // of State and Identity, including retries
	Attempt     time.Duration // of one request to the BMC
	Poll        time.Duration // between readings
	// Again is the pause after a command that was not accepted.
	Again time.Duration
	// Settle is how long a state must last to count.
	Settle time.Duration
	// Late is how long a BMC may take to execute a command that it has accepted. While a cut may still be pending, a node
	// that is on does not count as powered on.
	Late time.Duration
	// Shutdown is how long an operating system may take to shut down after the caller has given up waiting for it. Until then, a node
	// that has not been off does not count as powered on.
	Shutdown time.Duration
	// Trying is how long Restore begins new tries at a node: BMCs miss commands, and refuse them while they are busy.
	Trying time.Duration
	// LoginPause is how long a BMC gets no requests after it refused a login.
	LoginPause time.Duration
}

func (o Options) defaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.SoftTimeout = cmp.Or(o.SoftTimeout, 10*time.Minute)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 30*time.Second)
	o.Attempt = cmp.Or(o.Attempt, 15*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Again = cmp.Or(o.Again, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, 3*time.Second)
	o.Late = cmp.Or(o.Late, 45*time.Second)
	o.Shutdown = cmp.Or(o.Shutdown, 5*time.Minute)
	o.Trying = cmp.Or(o.Trying, 3*time.Minute)
	o.LoginPause = cmp.Or(o.LoginPause, time.Minute)
	return o
}

// triesMax is the maximum number of times that an operation sends its command, and that a reading is tried.
const triesMax = 3

// Switch combines a Controller's requests into operations. Each reads the state back and succeeds only if the requested
// state is reached and stays; each ends within its timeout. Its methods may be called from several goroutines; requests
// reach the BMC one at a time.
type Switch struct {
	node       string
	controller Controller
	o          Options
	turn       chan struct{} // one token; its holder sends requests to the BMC

	// The holder of turn owns the fields below. cutAt is when the last command was sent that cuts the power and may still
	// be pending. It starts as the time at which this Switch was made: another process may have sent one shortly before.
	cutAt   time.Time
	softAt  time.Time // when a shutdown was requested, unless the node has been off since
	refused time.Time // when the login was last refused
	login   error
}

// NewSwitch wraps the BMC of the node called name.
func NewSwitch(name string, c Controller, o Options) *Switch {
	s := &Switch{node: name, controller: c, o: o.defaults(), turn: make(chan struct{}, 1), cutAt: time.Now()}
	s.turn <- struct{}{}
	return s
}

// State reads the power state.
func (s *Switch) State(ctx context.Context) (target.PowerState, error) {
	state := target.PowerUnknown
	err := s.reading(ctx, "read the power state", func(ctx context.Context) (err error) {
		state, err = s.controller.State(ctx)
		return err
	})
	if err != nil {
		return target.PowerUnknown, err
	}
	return state, nil
}

// Identity reads the identity of the BMC's machine.
func (s *Switch) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	err := s.reading(ctx, "read the identity", func(ctx context.Context) (err error) {
		id, err = s.controller.Identity(ctx)
		return err
	})
	return id, err
}

// On powers the node on. A node that is already on counts as powered on only when no cut can be pending any more.
func (s *Switch) On(ctx context.Context) error {
	return s.bring(ctx, operation{what: "power on", want: target.PowerOn, send: s.controller.On, timeout: s.o.Timeout})
}

// mayShutDown notes that a process that is dead may have requested a shutdown.
func (s *Switch) mayShutDown() { s.softAt = time.Now() }

// Off cuts the power of the node.
func (s *Switch) Off(ctx context.Context) error {
	return s.bring(ctx, operation{what: "cut the power", want: target.PowerOff, send: s.controller.Off, timeout: s.o.Timeout})
}

// Soft requests a shutdown of the node's operating system and waits until the node is off.
func (s *Switch) Soft(ctx context.Context) error {
	return s.bring(ctx, operation{what: "shut down", want: target.PowerOff, send: s.controller.Soft, timeout: s.o.SoftTimeout, once: true})
}

// staysOff reports whether the node is and stays off, without sending commands.
func (s *Switch) staysOff(ctx context.Context) error {
	return s.bring(ctx, operation{what: "see that it stays off", want: target.PowerOff, timeout: s.o.ReadTimeout})
}

// reading tries a request that changes nothing.
func (s *Switch) reading(ctx context.Context, what string, read func(context.Context) error) error {
	limit, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	if err := s.take(limit, what); err != nil {
		return s.cause(ctx, err)
	}
	defer s.give()
	var err error
	for try := range triesMax {
		if try > 0 && wait.For(limit, s.o.Poll) != nil {
			break
		}
		if err = s.attempt(limit, what, read); err == nil || final(err) || limit.Err() != nil {
			break
		}
	}
	return s.cause(ctx, err)
}

// cause returns the end of the caller's context in preference to errors that it caused.
func (s *Switch) cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

func (s *Switch) take(ctx context.Context, what string) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ended(ctx, s.node, what)
	}
}

func (s *Switch) give() { s.turn <- struct{}{} }

// attempt makes one request within its timeout. A BMC that refused the login gets no requests for LoginPause.
func (s *Switch) attempt(ctx context.Context, what string, request func(context.Context) error) error {
	if s.login != nil && time.Since(s.refused) < s.o.LoginPause {
		return s.login
	}
	limit, cancel := context.WithTimeout(ctx, s.o.Attempt)
	defer cancel()
	err := request(limit)
	switch {
	case err == nil:
		s.login = nil
	case codeOf(err) == CodeLogin:
		s.login, s.refused = err, time.Now()
	case limit.Err() != nil && ctx.Err() == nil:
		return fault(CodeUnreachable, s.node, what, fmt.Errorf("no answer in %v", s.o.Attempt))
	}
	return err
}

// operation is one change of a node's power state.
type operation struct {
	what    string
	want    target.PowerState
	send    func(context.Context) error // nil: only read the state
	timeout time.Duration
	// once: an accepted command is not repeated. Some systems handle a second press of the button differently.
	once bool

	start   time.Time
	first   time.Time // when the first command was sent
	unlike  time.Time // when the state was last read and not the requested one
	told    bool      // whether reaching the requested state was reported
	sent    int       // commands, accepted or not
	sentAt  time.Time // when the last one was sent
	since   time.Time // since when the state has been the requested one; zero: it is not
	flapped bool      // the state was the requested one, and then changed
	unread  int       // failed readings in a row
	state   target.PowerState
	sawAt   time.Time // when state was read
	err     error     // of the last reading that failed, while unread is not 0
	refusal error     // of the last command, nil if it was accepted
}

// bring sends commands until the state is the requested one, and stays.
func (s *Switch) bring(ctx context.Context, op operation) error {
	limit, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	if err := s.take(limit, op.what); err != nil {
		return s.cause(ctx, err)
	}
	defer s.give()
	if pending := s.o.Shutdown - time.Since(s.softAt); op.want == target.PowerOn && pending > 0 {
		var end context.CancelFunc
		limit, end = context.WithTimeout(ctx, op.timeout+pending)
		defer end()
	}
	op.state, op.start = target.PowerUnknown, time.Now()
	for {
		if err := s.look(limit, &op); err != nil {
			return s.cause(ctx, err)
		}
		if op.sent > 0 && !op.since.IsZero() && !op.told {
			op.told = true
			before := op.first
			if op.unlike.After(before) {
				before = op.unlike
			}
			target.TellPowerChange(ctx, target.PowerChange{Sent: op.first, Seen: op.since, Before: before})
		}
		if s.settled(&op) {
			if op.want == target.PowerOff && op.sent == 1 {
				s.cutAt = time.Time{} // it took effect, and no second one was sent
			}
			return nil
		}
		if s.due(&op) {
			if err := s.command(limit, &op); err != nil {
				return s.cause(ctx, err)
			}
		}
		// After a refusal of the last command no change can follow; a command without an answer may still take effect.
		lost := op.sent == triesMax && codeOf(op.refusal) == CodeRefused && op.sawAt.After(op.sentAt)
		if lost || wait.For(limit, s.o.Poll) != nil {
			return s.cause(ctx, s.failure(&op))
		}
	}
}

// look reads the state into op. Its error is final.
func (s *Switch) look(ctx context.Context, op *operation) error {
	state, asked := target.PowerUnknown, time.Now()
	err := s.attempt(ctx, op.what, func(ctx context.Context) (err error) {
		state, err = s.controller.State(ctx)
		return err
	})
	over := ctx.Err() != nil
	if err != nil && over && op.unread == 0 && time.Since(op.sawAt) < s.o.Poll+s.o.Settle {
		return nil // the state that was just read is valid
	}
	if err != nil {
		// The state may have changed since the last reading.
		op.state, op.since = target.PowerUnknown, time.Time{}
		if op.unread == 0 || !over { // a last reading that the deadline cut short explains nothing
			op.err = err
		}
		op.unread++
		if final(err) {
			return err
		}
		return nil
	}
	op.state, op.unread, op.err, op.sawAt = state, 0, nil, time.Now()
	if state == target.PowerOff {
		s.softAt = time.Time{}
	}
	switch {
	case op.state != op.want:
		op.flapped = op.flapped || !op.since.IsZero()
		op.since, op.unlike = time.Time{}, asked
	case op.since.IsZero():
		op.since = time.Now()
	}
	return nil
}

// settled reports whether the state has been the requested one for long enough.
func (s *Switch) settled(op *operation) bool {
	if op.since.IsZero() || op.sawAt.Sub(op.since) < s.o.Settle {
		return false
	}
	cutMayCome := !s.cutAt.IsZero() && op.sawAt.Sub(s.cutAt) < s.o.Late
	mayShutDown := !s.softAt.IsZero() && op.sawAt.Sub(s.softAt) < s.o.Shutdown
	return op.want != target.PowerOn || !cutMayCome && !mayShutDown
}

// blindAfter is how many readings in a row may fail before a node is powered on without knowing its state, which is
// harmless. The power is never cut without knowing the state.
const blindAfter = 2

// due reports whether to send the command now.
func (s *Switch) due(op *operation) bool {
	opposite := target.PowerOn
	if op.want == target.PowerOn {
		opposite = target.PowerOff
	}
	blind := op.want == target.PowerOn && op.unread >= blindAfter
	switch {
	case op.send == nil, op.sent >= triesMax, op.state != opposite && !blind:
		return false
	case op.sent == 0:
		return true
	case op.refusal != nil:
		return time.Since(op.sentAt) >= s.o.Again
	case op.once:
		return false
	}
	return time.Since(op.sentAt) >= op.timeout/triesMax
}

// command sends the command once. Its error is final.
func (s *Switch) command(ctx context.Context, op *operation) error {
	if op.sent == 0 {
		// Nodes that one step switches get their commands at the same time. The survey of another of them may ask meanwhile whether this one
		// is off: if it had to wait for its turn, the one would wait for the other.
		s.give()
		target.Together(ctx)
		<-s.turn // what others ask is bounded
		op.first = time.Now()
	}
	op.sent++
	op.sentAt = time.Now()
	if op.want == target.PowerOff {
		s.cutAt = op.sentAt
	}
	op.refusal = s.attempt(ctx, op.what, op.send)
	if op.once && !final(op.refusal) && codeOf(op.refusal) != CodeRefused {
		s.softAt = op.sentAt
	}
	if final(op.refusal) {
		return op.refusal
	}
	return nil
}

// failure explains why the operation did not complete in time.
func (s *Switch) failure(op *operation) error {
	after := fmt.Sprintf("after %v and %d commands", time.Since(op.start).Round(time.Second), op.sent)
	if op.sent == 1 {
		after = strings.Replace(after, "1 commands", "one command", 1)
	}
	switch {
	case op.unread > 0:
		return fault(cmp.Or(codeOf(op.err), CodeUnreachable), s.node, op.what,
			fmt.Errorf("%s the state cannot be read, and whether the node is on is not known: %w", after, reason(op.err)))
	case op.flapped, op.state == op.want:
		return fault(CodeUnsteady, s.node, op.what, fmt.Errorf("%s it is %s, but has not been for long enough", after, op.state))
	case op.refusal != nil:
		return fault(cmp.Or(codeOf(op.refusal), CodeRefused), s.node, op.what, fmt.Errorf("%s it is %s: %w", after, op.state, reason(op.refusal)))
	case op.sent == 0:
		return fault(CodeNoEffect, s.node, op.what, fmt.Errorf("%s the BMC says neither on nor off", after))
	}
	return fault(CodeNoEffect, s.node, op.what, fmt.Errorf("%s, which the BMC accepted, it is %s", after, op.state))
}
