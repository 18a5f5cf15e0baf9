package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// nursery starts processes and reaps them, orphans included, as PID 1 of a namespace must. libvirt's guests are orphans, and
// libvirt considers a zombie as running. No other code of the process may wait for children.
type nursery struct {
	mu       sync.Mutex // held from starting a process until it is known
	children map[int]*child
	wake     chan os.Signal
}

// child is a process that was started here.
type child struct {
	name   string
	id     int
	gone   chan struct{} // closed when it was waited for
	status unix.WaitStatus
}

func newNursery() *nursery {
	n := &nursery{children: map[int]*child{}, wake: make(chan os.Signal, 1)}
	signal.Notify(n.wake, unix.SIGCHLD)
	go n.work()
	return n
}

// work ends with the process, which is the first of its namespace.
func (n *nursery) work() {
	for tick := time.NewTicker(time.Second); ; { // signals of the same kind may come as one
		select {
		case <-n.wake:
		case <-tick.C:
		}
		n.reap()
	}
}

// reap waits for all that ended, and reports whether no process is left.
func (n *nursery) reap() (empty bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		var status unix.WaitStatus
		id, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || id <= 0 {
			return errors.Is(err, unix.ECHILD)
		}
		if c := n.children[id]; c != nil {
			c.status = status
			delete(n.children, id)
			close(c.gone)
		}
	}
}

// start starts a program. The files are its standard input, output and error, and further ones.
func (n *nursery) start(argv []string, files []*os.File, sys *unix.SysProcAttr) (*child, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: "/", Env: environment(), Files: files, Sys: sys})
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", argv[0], err)
	}
	c := &child{name: argv[0], id: p.Pid, gone: make(chan struct{})}
	n.children[p.Pid] = c
	return c, p.Release()
}

// environment is all that programs of a lab get to see of the environment.
func environment() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		childMark + "=1",
	}
}

// signal sends a signal to a process that is still ours.
func (n *nursery) signal(c *child, s unix.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.children[c.id] == c {
		_ = unix.Kill(c.id, s)
	}
}

// outcome says how a process ended.
func (c *child) outcome() error {
	switch {
	case c.status.Signaled():
		return fmt.Errorf("%s was ended by signal %d", c.name, c.status.Signal())
	case c.status.ExitStatus() != 0:
		return fmt.Errorf("%s ended with code %d", c.name, c.status.ExitStatus())
	}
	return nil
}

// run runs a program to its end, and returns what it printed. A failure has it in its text.
func (n *nursery) run(ctx context.Context, argv ...string) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	c, err := n.start(argv, []*os.File{nil, write, write}, nil)
	if err = errors.Join(err, write.Close()); err != nil {
		return "", errors.Join(err, read.Close())
	}
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		_, err := out.ReadFrom(read)
		done <- errors.Join(err, read.Close())
	}()
	select {
	case <-c.gone:
	case <-ctx.Done():
		n.signal(c, unix.SIGKILL)
		<-c.gone
	}
	err = <-done
	if err == nil {
		err = c.outcome()
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}
