package iohosts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// session is the connection to one host: a process of ssh and the program at its other end.
type session struct {
	host   Host
	number int
	bears  time.Duration // how long it may be silent
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *lines
	writer writer
	errors tail // what ssh and the host print as errors
	clock  hostClock
	hello  hello

	pings    atomic.Int64
	sent     sync.Map      // time of each ping under way
	ponged   chan struct{} // holds one when a pong came
	heard    atomic.Int64  // when the host was last heard, in nanoseconds since 1970
	silent   atomic.Bool   // nothing was heard of the host for too long
	stopping sync.Once
	exited   chan struct{} // closed when ssh has ended; exit is valid then
	exit     error
}

// Times that connections keep. silenceMax is how long one side bears to hear nothing of the other before it gives up:
// both say something every second.
const (
	silenceMax  = 60 * time.Second
	pingEvery   = time.Second
	leaveMax    = 45 * time.Second // to stop the load, wait for what is in flight, report
	hangUpMax   = 5 * time.Second  // for ssh to end once its input is closed
	pingsAtOnce = 8
)

// sshArguments are those of ssh for a host. Names were checked, and "--" ends options all the same.
func sshArguments(h Host, options []string) []string {
	args := []string{"-T", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	// ssh takes the first of several values: the user's come first.
	args = append(args, "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	return append(args, "--", h.Address, remoteCommand)
}

// connect starts ssh and the program on the host, and learns its clock. The caller calls hangUp in the end.
func connect(ctx context.Context, h Host, number int, o *Options, find func(string) (*program, error)) (*session, error) {
	s := &session{host: h, number: number, bears: cmp.Or(o.Silence, silenceMax), ponged: make(chan struct{}, 1), exited: make(chan struct{})}
	s.cmd = exec.Command("ssh", sshArguments(h, o.SSHOptions)...)
	s.cmd.Stderr, s.cmd.WaitDelay = &s.errors, hangUpMax // a shared master connection keeps it open
	apart(s.cmd)
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out, s.writer.to = in, newLines(out), in
	if err := s.cmd.Start(); err != nil {
		return nil, &diag.Error{
			Code: "no-ssh", Message: "start ssh", Err: err, Exit: diag.ExitUnavailable, Hint: "install OpenSSH's client: bragg reaches hosts with it",
		}
	}
	stopped := context.AfterFunc(ctx, s.kill)
	defer stopped()
	err = bootstrap(in, s.out, o, find)
	if err == nil {
		err = s.greet(o)
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || isBrokenPipe(err) {
			err = s.why()
		}
		s.finish(hangUpMax)
		return nil, hostError(h, err, s.errors.String())
	}
	return s, nil
}

// greet reads who answers.
func (s *session) greet(o *Options) error {
	m, err := s.out.next()
	if err != nil {
		return err
	}
	if m.Hello == nil {
		return errors.New("it does not say hello")
	}
	s.hello = *m.Hello
	s.hello.Version, s.hello.Hostname, s.hello.Platform = printable(m.Hello.Version), printable(m.Hello.Hostname), printable(m.Hello.Platform)
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

// hostError says which host, and what ssh printed.
func hostError(h Host, err error, printed string) error {
	var list *diag.ListError
	if errors.As(err, &list) {
		told := slices.Clone(list.List)
		for i := range told {
			told[i].Message = fmt.Sprintf("host %q: %s", h.Name, told[i].Message)
		}
		return &diag.ListError{List: told}
	}
	text := fmt.Sprintf("host %q: %v", h.Name, err)
	if printed = strings.TrimSpace(printed); printed != "" && !strings.Contains(text, printed) {
		text += ": " + strings.ReplaceAll(printed, "\n", "; ")
	}
	e := &diag.Error{Code: "host", Message: printable(text), Exit: diag.ExitUnavailable}
	var told *diag.Error
	if errors.As(err, &told) && told.Code != "" { // what has no code is the world's fault, a full disk for one
		e.Code, e.Hint, e.Exit = told.Code, told.Hint, told.ExitCode()
	}
	return e
}

// printable keeps what a host says from steering the terminal that it is shown on.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// why says how the connection ended.
func (s *session) why() error {
	select {
	case <-s.exited:
	default:
		go s.wait()
		select {
		case <-s.exited:
		case <-time.After(hangUpMax):
		}
	}
	var status *exec.ExitError
	if errors.As(s.exit, &status) && status.ExitCode() == 255 && s.hello.Version == "" {
		return &diag.Error{
			Code: "ssh", Message: "ssh cannot reach it", Exit: diag.ExitUnavailable,
			Hint: "this must work without a question: " + s.host.tryOut(),
		}
	}
	if s.silent.Load() {
		return fmt.Errorf("nothing was heard of it for %s", s.bears)
	}
	return errors.New("the connection broke")
}

func (s *session) wait() {
	s.stopping.Do(func() {
		s.exit = s.cmd.Wait()
		close(s.exited)
	})
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
					s.kill()
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
		m, err := s.out.next()
		received := time.Now()
		switch {
		case errors.Is(err, io.EOF):
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
	s.clock.add(sent.(time.Time), received, p)
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

// kill ends ssh at once; the program at the other end sees its input close.
func (s *session) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
}

// finish closes the host's input, at which it ends, and waits for ssh, but not longer than bound.
func (s *session) finish(bound time.Duration) {
	_ = s.in.Close()
	go s.wait()
	select {
	case <-s.exited:
	case <-time.After(bound):
		s.kill()
		<-s.exited
	}
}

func isBrokenPipe(err error) bool { return strings.Contains(err.Error(), "broken pipe") }

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytesMax = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytesMax; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.text, nil))
}
