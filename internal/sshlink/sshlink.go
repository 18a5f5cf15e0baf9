// Package sshlink connects to hosts with the system's ssh and runs a program of Bragg at the other end, without installing
// it there.
//
//	ParseHosts ──▶ Host ──Start──▶ ssh ──▶ script at the other end ──▶ program, sent if it is missing ──▶ Link
//
// A Link is the standard input and output of that program. No port is opened: all traffic is inside of ssh. Keys, jump
// hosts and aliases are from ssh's own configuration; host keys are checked according to it, and ssh never prompts. Where
// to start reading: bootstrap.go transfers the program, host.go parses host names.
package sshlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// Link is a connection: a process of ssh, and the program at its other end.
type Link struct {
	host     Host
	in       io.WriteCloser
	out      *textio.LineReader
	options  []string // passed to ssh with -o
	cmd      *exec.Cmd
	errors   textio.Tail // error output of ssh and the host
	stopping sync.Once
	exited   chan struct{} // closed when ssh has ended; then exit is valid
	exit     error
}

// HangUpMax is how long ssh may take to end once its input is closed.
const HangUpMax = 5 * time.Second

// arguments are ssh's arguments for a host. Names were checked, and "--" ends options in addition.
func arguments(h Host, r *Remote) []string {
	args := []string{"-T", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	for _, o := range r.Options {
		args = append(args, "-o", o)
	}
	// ssh uses the first of several values: the user's come first.
	args = append(args, "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	return append(args, "--", h.Address, r.command())
}

// Start starts ssh and the program on the host. The caller must call Close; ctx bounds the start only, and its cause is the
// error if it ended first.
func Start(ctx context.Context, h Host, r *Remote) (*Link, error) {
	l := newLink(h, r.Options, arguments(h, r))
	return l.start(ctx, func() error { return bootstrap(l.in, l.out, r) })
}

func newLink(h Host, options, arguments []string) *Link {
	return &Link{host: h, options: options, cmd: exec.Command("ssh", arguments...), exited: make(chan struct{}),
		errors: textio.Tail{MaxBytes: tailBytesMax}}
}

// start starts ssh and checks with greet that the other end works as expected.
func (l *Link) start(ctx context.Context, greet func() error) (*Link, error) {
	l.cmd.Stderr, l.cmd.WaitDelay = &l.errors, HangUpMax // a shared master connection keeps Stderr open
	apart(l.cmd)
	in, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.in, l.out = in, textio.NewLineReader(out, lineBytesMax)
	if err := l.cmd.Start(); err != nil {
		return nil, &diag.Error{
			Code: "no-ssh", Message: "start ssh", Err: err, Exit: diag.ExitUnavailable, Hint: "install OpenSSH's client: bragg reaches hosts with it",
		}
	}
	stopped := context.AfterFunc(ctx, l.Kill)
	defer stopped()
	if err := greet(); err != nil {
		if Broken(err) {
			err = l.why()
		}
		l.finish(HangUpMax)
		if ctx.Err() != nil { // ssh was killed because ctx ended, not because of the host
			return nil, fmt.Errorf("reach host %q: %w", l.host.Name, context.Cause(ctx))
		}
		return nil, l.Error(err)
	}
	return l, nil
}

// Broken reports whether a read or write error means that the other end is gone.
func Broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// Error adds the host and ssh's output to err.
func (l *Link) Error(err error) error { return HostError(l.host, err, l.errors.String()) }

// HostError adds the host to err. printed is ssh's output.
func HostError(h Host, err error, printed string) error {
	var list *diag.ListError
	if errors.As(err, &list) {
		userErr := slices.Clone(list.List)
		for i := range userErr {
			userErr[i].Message = fmt.Sprintf("host %q: %s", h.Name, userErr[i].Message)
		}
		return &diag.ListError{List: userErr}
	}
	text := fmt.Sprintf("host %q: %v", h.Name, err)
	if printed = essence(printed); printed != "" && !strings.Contains(text, printed) {
		text += ": " + strings.ReplaceAll(printed, "\n", "; ")
	}
	e := &diag.Error{Code: "host", Message: textio.Line(text), Exit: diag.ExitUnavailable}
	var userErr *diag.Error
	if errors.As(err, &userErr) && userErr.Code != "" { // an error without a code is external, such as a full disk
		e.Code, e.Hint, e.Exit = userErr.Code, userErr.Hint, userErr.ExitCode()
	}
	return e
}

// why returns how the connection ended before the other end worked as expected.
func (l *Link) why() error {
	select {
	case <-l.exited:
	default:
		go l.wait()
		select {
		case <-l.exited:
		case <-time.After(HangUpMax):
			return errors.New("the connection broke")
		}
	}
	var status *exec.ExitError
	if errors.As(l.exit, &status) && status.ExitCode() == 255 {
		return l.unreached()
	}
	return errors.New("the connection broke")
}

func (l *Link) wait() {
	l.stopping.Do(func() {
		l.exit = l.cmd.Wait()
		close(l.exited)
	})
}

// Kill ends ssh at once; the program at the other end sees its input close.
func (l *Link) Kill() {
	_ = l.cmd.Process.Kill() // it may have ended
}

// HangUp stops ssh and the processes that it started, even if the host does not answer, and waits at most bound for them to
// exit. The remote program sees its input close and may exit a little later.
func (l *Link) HangUp(bound time.Duration) {
	select {
	case <-l.exited:
	default:
		terminate(l.cmd.Process)
	}
	l.finish(bound)
}

// finish closes the program's input, which ends it, and waits for ssh, but not longer than bound.
func (l *Link) finish(bound time.Duration) {
	_ = l.in.Close()
	go l.wait()
	select {
	case <-l.exited:
	case <-time.After(bound):
		l.Kill()
		<-l.exited
	}
}

// Read reads the program's output.
func (l *Link) Read(b []byte) (int, error) { return l.out.Rest().Read(b) }

// Write writes to the program's input.
func (l *Link) Write(b []byte) (int, error) { return l.in.Write(b) }

// Close hangs up. It does not wait for the program to exit: the host may be gone.
func (l *Link) Close() error {
	l.HangUp(HangUpMax)
	return nil
}

const (
	tailBytesMax = 2 << 10 // of the error output of ssh and the host
	lineBytesMax = 4 << 10 // of a line that a login shell or the script prints
)
