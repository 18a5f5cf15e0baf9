package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Of linux/connector.h and linux/cn_proc.h.
const (
	connectorGroup = 1 // CN_IDX_PROC, and its value
	listen         = 1 // PROC_CN_MCAST_LISTEN
	forked         = 1 // PROC_EVENT_FORK
	exited         = 0x80000000
	headersBytes   = 16 + 20 // of netlink, of the connector
	eventBytes     = 16      // before the data of an event: what, cpu, time
	receiveBytes   = 8 << 20 // a burst of events of a busy machine
)

// forkEvent is the begin or the end of a process of this machine.
type forkEvent struct {
	parent, process uint32
	end             bool
}

// forks counts the descendants of one process at a time.
type forks struct {
	socket int
	stop   chan struct{}
	done   sync.WaitGroup

	mu     sync.Mutex
	root   uint32          // 0: not known yet
	early  []forkEvent     // before the root was known
	family map[uint32]bool // descendants of the root that live, and itself
	count  int
}

// connect subscribes to the process events of the kernel, which needs root.
func connect() (*forks, error) {
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, syscall.NETLINK_CONNECTOR)
	if err != nil {
		return nil, err
	}
	request := make([]byte, headersBytes+4)
	le := binary.NativeEndian
	le.PutUint32(request, uint32(len(request)))
	le.PutUint16(request[4:], syscall.NLMSG_DONE)
	le.PutUint32(request[16:], connectorGroup)
	le.PutUint32(request[20:], connectorGroup)
	le.PutUint16(request[32:], 4)
	le.PutUint32(request[headersBytes:], listen)
	_ = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, receiveBytes)
	err = syscall.Bind(socket, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: connectorGroup})
	if err == nil {
		err = syscall.Sendto(socket, request, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK})
	}
	if err != nil {
		return nil, errors.Join(err, syscall.Close(socket))
	}
	f := &forks{socket: socket, stop: make(chan struct{})}
	f.done.Go(func() {
		every := time.NewTicker(lookEvery) // often enough that the socket's buffer does not overflow
		defer every.Stop()
		for {
			select {
			case <-f.stop:
				return
			case <-every.C:
				f.started()
			}
		}
	})
	return f, nil
}

// close ends the subscription with the socket.
func (f *forks) close() {
	close(f.stop)
	f.done.Wait()
	_ = syscall.Close(f.socket)
}

// drain takes the events that have arrived. The kernel delivers an event before the process that it is about runs.
func (f *forks) drain() {
	var buffer [4096]byte
	for {
		n, _, err := syscall.Recvfrom(f.socket, buffer[:], syscall.MSG_DONTWAIT)
		switch {
		case err == nil && n >= headersBytes+eventBytes+16:
			f.take(buffer[headersBytes:n])
		case err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.ENOBUFS):
			return // there are no more
		}
	}
}

func (f *forks) take(event []byte) {
	le := binary.NativeEndian
	number := func(i int) uint32 { return le.Uint32(event[eventBytes+4*i:]) }
	var e forkEvent
	switch le.Uint32(event) {
	case forked: // pid and tgid of the parent, and of the child
		if e = (forkEvent{parent: number(1), process: number(2)}); number(2) != number(3) {
			return // a thread
		}
	case exited:
		if e = (forkEvent{process: number(0), end: true}); number(0) != number(1) {
			return
		}
	default:
		return
	}
	if f.root == 0 {
		f.early = append(f.early, e)
		return
	}
	f.apply(e)
}

func (f *forks) apply(e forkEvent) {
	switch {
	case e.end:
		delete(f.family, e.process)
	case f.family[e.parent]:
		f.family[e.process] = true
		f.count++
	}
}

// prepare begins to keep events, before a process is started.
func (f *forks) prepare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drain()
	f.root, f.early, f.family, f.count = 0, nil, nil, 0
}

// follow counts the descendants of a process that was started after prepare.
func (f *forks) follow(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drain()
	f.root, f.family = uint32(pid), map[uint32]bool{uint32(pid): true}
	for _, e := range f.early {
		f.apply(e)
	}
	f.early = nil
}

// started is the number of processes up to now.
func (f *forks) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drain()
	return f.count
}

// lookEvery is the time between two looks.
const lookEvery = 20 * time.Millisecond

// looks counts descendants by looking at /proc, where the kernel sends no events.
type looks struct {
	stop chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	seen map[int]bool
}

func look(root int) *looks {
	l := &looks{stop: make(chan struct{}), seen: map[int]bool{}}
	l.done.Go(func() {
		every := time.NewTicker(lookEvery)
		defer every.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-every.C:
				l.once(root)
			}
		}
	})
	return l
}

func (l *looks) once(root int) {
	parents := map[int]int{}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(e, "stat"))
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(e))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == root {
				l.seen[pid] = true
				break
			}
		}
	}
}

func (l *looks) started() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func (l *looks) close() {
	close(l.stop)
	l.done.Wait()
}
