package sshlink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Forwarding makes sockets of a host available to programs of this machine.
type Forwarding struct {
	// Sockets are pairs of paths: on this machine, in a folder that only this user can read and where nothing exists yet,
	// and on the host. They consist of letters, digits and _ . / + @ -, which have no special meaning to ssh.
	Sockets [][2]string
	Options []string // passed to ssh with -o
}

// forwardArguments are ssh's arguments. The connection is never shared, even if the user's configuration enables a master
// connection: a master would own the sockets and outlive the process that requested them.
func forwardArguments(h Host, f *Forwarding) []string {
	args := []string{
		"-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "RemoteCommand=none", "-o", "PermitLocalCommand=no", "-o", "ControlMaster=no",
		"-o", "ControlPath=none", "-o", "StreamLocalBindMask=0177",
	}
	for _, o := range f.Options {
		args = append(args, "-o", o)
	}
	// ssh uses the first of several values: the user's come first.
	args = append(args, "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
	for _, s := range f.Sockets {
		args = append(args, "-L", s[0]+":"+s[1])
	}
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	return append(args, "--", h.Address, "cat")
}

const greeting = "bragg-link is up"

// Forward starts ssh, and returns when the host's sockets exist on this machine. A host that stops answering is dropped
// after 15 s with all its connections. The remote program is cat: its echo proves that the login worked, and it exits on end
// of input, so ssh exits with this process even after a crash. ctx bounds the start only. The caller must call HangUp.
func Forward(ctx context.Context, h Host, f *Forwarding) (*Link, error) {
	l := newLink(h, f.Options, forwardArguments(h, f))
	if _, err := l.start(ctx, l.echo); err != nil {
		return nil, err
	}
	go l.wait()
	return l, nil
}

// echo checks that the other end returns what it sends. A login shell may print something before.
func (l *Link) echo() error {
	if _, err := fmt.Fprintln(l.in, greeting); err != nil {
		return err
	}
	for range noiseLinesMax {
		line, err := l.out.Next()
		if err != nil {
			return err
		}
		if string(line) == greeting {
			return nil
		}
	}
	return errors.New("its login shell does not run cat")
}

// Gone is closed when the ssh of a Forward has ended.
func (l *Link) Gone() <-chan struct{} { return l.exited }
