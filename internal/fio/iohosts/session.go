package iohosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/textio"
)

// session is the connection to one host.
type session struct {
	client *rpc.Client
	run    net.Conn // its stream; nil before it runs
	clock  clock.Filter
	hello  hello
}

// Timeouts of connections.
const (
	silenceMax   = 60 * time.Second // how long one side may be silent before the other gives up
	leaveMax     = 45 * time.Second // to stop the load, wait for what is in flight, report
	exchanges    = 8                // of one comparison of clocks
	exchangesMax = 2 * time.Second  // for all of them
)

// Verb is the hidden command that serves on a host. Its argument is the directory that contains only the program and must
// be removed, or sshlink.Check.
const Verb = "__iohost"

// connect starts ssh and the program on the host, and checks that it has this version. The caller must hang up.
func connect(ctx context.Context, h sshlink.Host, o *Options, builds *sshlink.Builds) (*session, error) {
	remote := &sshlink.Remote{Program: "bragg", Verb: Verb, Find: builds.Find, Folder: o.Folder, Keep: o.Keep, Options: o.SSHOptions}
	client, err := rpc.Dial(ctx, h, remote, cmp.Or(o.Silence, silenceMax))
	if err != nil {
		return nil, err
	}
	s := &session{client: client}
	s.hello, err = s.greet(ctx, 1)
	if err == nil && s.hello.Version != o.Version {
		err = &diag.Error{
			Code: "version", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("its bragg is %s, and this one is %s", s.hello.Version, o.Version),
			Hint:    "the build for its platform must be of the same version",
		}
	}
	if err != nil {
		err = client.Why(err)
		s.hangUp()
		return nil, err
	}
	return s, nil
}

// greet queries the host's identity and clocks, several times in sequence.
func (s *session) greet(ctx context.Context, times int) (h hello, err error) {
	sent := time.Now()
	stream, err := s.client.Open(ctx, request{opHello})
	if err != nil {
		return h, err
	}
	defer stream.Close()
	for {
		if err := rpc.Answer(ctx, stream, &h); err != nil {
			return h, err
		}
		received := time.Now()
		if h.UptimeNanos < 0 || h.UptimeNanos > wire.UptimeMax || h.UnixNanos < -wire.UptimeMax || h.UnixNanos > 2*wire.UptimeMax {
			return h, errors.New("its clock is out of bounds")
		}
		s.clock.Add(sent, received, h.UptimeNanos, h.UnixNanos)
		h.Version, h.Hostname, h.Platform = textio.Line(h.Version), textio.Line(h.Hostname), textio.Line(h.Platform)
		if times--; times <= 0 {
			return h, nil
		}
		sent = time.Now()
		if _, err := io.WriteString(stream, "\n"); err != nil {
			return h, err
		}
	}
}

// compareClocks returns the best answer about the host's clocks. If the host is too busy to answer now, that is the answer
// to the first greeting.
func (s *session) compareClocks(ctx context.Context) clock.Reading {
	ctx, cancel := context.WithTimeout(ctx, exchangesMax)
	defer cancel()
	_, _ = s.greet(ctx, exchanges) // if the host is lost, the reader of its messages has the reason
	best, _ := s.clock.Best(time.Now())
	return best
}

// begin sends the host its jobs.
func (s *session) begin(ctx context.Context, o *order) (err error) {
	if s.run, err = s.client.Open(ctx, request{opRun}); err != nil {
		return s.client.Why(err)
	}
	_ = send(s.run, &message{Jobs: o}) // the following calls see why it fails
	return nil
}

// follow passes on the host's messages until it has ended. A host that is given up ends its load.
func (s *session) follow(hand func(*message)) error {
	defer s.run.Close()
	lines := textio.NewLineReader(s.run, lineBytesMax)
	for {
		m, err := next(lines)
		switch {
		case err != nil:
			return s.client.Why(err)
		case m.End != nil:
			return nil
		}
		hand(m)
	}
}

// hangUp ends the connection. A host with jobs may first end its load and remove incomplete files.
func (s *session) hangUp() {
	if s.run != nil {
		_ = s.run.Close()
		select {
		case <-s.client.Gone():
		case <-time.After(sshlink.HangUpMax):
		}
	}
	_ = s.client.Close()
}
