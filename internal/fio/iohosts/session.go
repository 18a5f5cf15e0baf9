package iohosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/textio"
)

// session is the connection to one host: a process of ssh and the program at its other end.
type session struct {
	host   sshlink.Host
	number int
	bears  time.Duration // how long it may be silent
	link   *sshlink.Link
	writer writer
	clock  clock.Filter
	hello  hello

	pings  atomic.Int64
	sent   sync.Map      // time of each ping under way
	ponged chan struct{} // holds one when a pong came
	heard  atomic.Int64  // when the host was last heard, in nanoseconds since 1970
	silent atomic.Bool   // nothing was heard of the host for too long
}

// Times that connections keep. silenceMax is how long one side bears to hear nothing of the other before it gives up:
// both say something every second.
const (
	silenceMax  = 60 * time.Second
	pingEvery   = time.Second
	leaveMax    = 45 * time.Second // to stop the load, wait for what is in flight, report
	pingsAtOnce = 8
)

// Verb is the hidden verb that serves on a host. Its argument is the directory that holds only the program and is to be
// removed, or sshlink.Check.
const Verb = "__iohost"

// connect starts ssh and the program on the host, and learns its clock. The caller must call link.Finish.
func connect(ctx context.Context, h sshlink.Host, number int, o *Options, find func(string) (*sshlink.Build, error)) (*session, error) {
	s := &session{host: h, number: number, bears: cmp.Or(o.Silence, silenceMax), ponged: make(chan struct{}, 1)}
	remote := &sshlink.Remote{Program: "bragg", Verb: Verb, Find: find, Folder: o.Folder, Keep: o.Keep, Options: o.SSHOptions}
	var err error
	if s.link, err = sshlink.Start(ctx, h, remote, lineBytesMax); err != nil {
		return nil, err
	}
	s.writer.to = s.link.In
	stopped := context.AfterFunc(ctx, s.link.Kill)
	defer stopped()
	if err := s.greet(o); err != nil {
		if sshlink.Broken(err) {
			err = s.link.Why(false)
		}
		s.link.Finish(sshlink.HangUpMax)
		return nil, s.link.Error(err)
	}
	return s, nil
}

// greet reads who answers.
func (s *session) greet(o *Options) error {
	m, err := next(s.link.Out)
	if err != nil {
		return err
	}
	if m.Hello == nil {
		return errors.New("it does not say hello")
	}
	s.hello = *m.Hello
	s.hello.Version, s.hello.Hostname, s.hello.Platform = textio.Line(m.Hello.Version), textio.Line(m.Hello.Hostname), textio.Line(m.Hello.Platform)
	if s.hello.Version != o.Version {
		return &diag.Error{
			Code: "version", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("its bragg is %s, and this one is %s", s.hello.Version, o.Version),
			Hint:    "the build for its platform must be of the same version",
		}
	}
	s.heard.Store(time.Now().UnixNano())
	return nil
}

// why says how the connection ended.
func (s *session) why() error {
	if s.silent.Load() {
		return fmt.Errorf("no message from it for %s", s.bears)
	}
	return s.link.Why(s.hello.Version != "")
}

// serve reads what the host says until it ends, and hands on what is not about clocks.
func (s *session) serve(hand func(*message)) error {
	beat, done := time.NewTicker(pingEvery), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-beat.C:
				if time.Since(time.Unix(0, s.heard.Load())) > s.bears {
					s.silent.Store(true)
					s.link.Kill()
					return
				}
				_ = s.ping() // a host that is gone is noticed by the reader
			}
		}
	})
	defer wait.Wait()
	defer close(done)
	defer beat.Stop()
	for {
		m, err := next(s.link.Out)
		received := time.Now()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return s.why()
		case err != nil:
			return err
		}
		s.heard.Store(received.UnixNano())
		switch {
		case m.Pong != nil:
			s.pong(received, m.Pong)
		case m.End != nil:
			return nil
		default:
			hand(m)
		}
	}
}

func (s *session) ping() error {
	n := s.pings.Add(1)
	s.sent.Store(n, time.Now())
	return s.writer.send(&message{Ping: &n})
}

func (s *session) pong(received time.Time, p *pong) {
	sent, ok := s.sent.LoadAndDelete(p.Ping)
	if !ok {
		return
	}
	s.clock.Add(sent.(time.Time), received, p.MonoNanos, p.WallNanos)
	select {
	case s.ponged <- struct{}{}:
	default:
	}
}

// sync asks for the host's clock several times, one after the other.
func (s *session) sync(ctx context.Context) {
	for range pingsAtOnce {
		if s.ping() != nil {
			return // the reader knows why
		}
		select {
		case <-s.ponged:
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
			return
		}
	}
}
