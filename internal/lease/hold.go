package lease

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

// A socket's conversation: one line of JSON each way.
type request struct {
	Take *Order  `json:"take,omitempty"` // nil: who holds it?
	Drop string  `json:"drop,omitempty"` // the id of the lease to end
	Met  *Holder `json:"met,omitempty"`  // the requester, which shares the machine
}

// Order requests or renews a lease of a machine.
type Order struct {
	Holder Holder `json:"holder"`
	// Over is the id of a lease whose holder is known to be gone: it may be replaced.
	Over string `json:"over,omitempty"`
}

// Answer is the result of an Order: the lease, or its current holder.
type Answer struct {
	Fence uint64  `json:"fence,omitempty"`
	Other *Holder `json:"other,omitempty"`
}

const (
	lineBytesMax = 8 << 10
	// talkMax bounds one conversation, which takes no time on a machine that is not busy; askMax one with a holder that
	// may be stopped, and is known by its process all the same.
	talkMax   = 10 * time.Second
	askMax    = 2 * time.Second
	talksMax  = 32 // at once
	bindPause = 5 * time.Millisecond
	bindMax   = 10 * time.Second
)

// address is the socket of a machine's lease. A scope keeps leases apart that are not meant to exclude each other, as those
// of tests that run at the same time; "" is the machine's own.
func address(scope string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@bragg-lease-%x", sha256.Sum256([]byte(scope)))[:48]}
}

// Held is the lease of this machine, in this process.
type Held struct{ *server }

// Hold takes the lease of this machine for this process. If another process holds it, Hold returns a *HeldError.
func Hold(ctx context.Context, scope string, h Holder) (*Held, error) {
	s, other, err := bindAlone(ctx, scope, owner{holder: h})
	if err != nil {
		return nil, err
	}
	if other != nil {
		return nil, &HeldError{By: *other}
	}
	holding.add(h.ID)
	return &Held{s}, nil
}

// Fence is the number of the lease.
func (h *Held) Fence() uint64 { return h.holder.Fence }

// Lost never reports: a kernel lease cannot be lost while its process runs.
func (h *Held) Lost() <-chan Holder { return nil }

// Unlock releases the lease.
func (h *Held) Unlock() error {
	holding.remove(h.holder.ID)
	h.end()
	h.talks.Wait()
	return nil
}

// bind makes a socket, or finds out who has it. It comes back for one that is just being given up: a process that is about to
// execute a program has copies of all sockets for a moment.
func bind(ctx context.Context, at *net.UnixAddr, o owner) (*server, *Holder, error) {
	for until := time.Now().Add(bindMax); ; {
		l, err := net.ListenUnix("unix", at)
		if err == nil {
			return serve(l, o), nil, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, nil, fmt.Errorf("take the lease of this machine: %w", err)
		}
		other, err := ask(at, nil)
		if err == nil {
			return nil, &other, nil
		}
		if errors.Is(err, context.DeadlineExceeded) || time.Now().After(until) {
			return nil, &other, nil // of whom only the process id is known
		}
		if err := wait.For(ctx, bindPause); err != nil {
			return nil, nil, err
		}
	}
}

// ask returns the holder of the lease behind a socket; met introduces this process to it. With an error the holder did not
// answer, and at most its process is known.
func ask(at *net.UnixAddr, met *Holder) (Holder, error) {
	var reply struct{ Holder Holder }
	peer, err := talk(at, askMax, request{Met: met}, &reply)
	if err != nil {
		reply.Holder = Holder{Run: "unknown", User: "this machine", Process: Process{PID: peer}}
	}
	return reply.Holder.Printable(), err
}

// Printable keeps what a process of another user says from steering the terminal that it is shown on.
func (h Holder) Printable() Holder {
	const shownMax = 200
	h.Run, h.User = textio.Clip(textio.Line(h.Run), shownMax), textio.Clip(textio.Line(h.User), shownMax)
	return h
}

// talk holds one conversation with the holder of a lease, whose process id it returns.
func talk(at *net.UnixAddr, patience time.Duration, r request, reply any) (peer int, err error) {
	conn, err := net.DialTimeout("unix", at.Name, patience)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	peer, _, _ = credentials(conn)
	_ = conn.SetDeadline(time.Now().Add(patience))
	text, err := json.Marshal(r)
	if err == nil {
		_, err = conn.Write(append(text, '\n'))
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(conn, lineBytesMax)).Decode(reply)
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = context.DeadlineExceeded
	}
	return peer, err
}

// server answers at the socket of a lease.
type server struct {
	owner
	listener *net.UnixListener
	talks    sync.WaitGroup
	ended    chan struct{}
	once     sync.Once

	mu sync.Mutex // guards owner.holder
}

// owner is whose lease a socket is.
type owner struct {
	holder  Holder
	keeping *keeping     // nil: the lease is that of this process
	met     func(Holder) // called for others that share the machine; nil for an exclusive lease
}

func serve(l *net.UnixListener, o owner) *server {
	s := &server{listener: l, owner: o, ended: make(chan struct{})}
	s.talks.Go(func() {
		slots := make(chan struct{}, talksMax)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			slots <- struct{}{}
			s.talks.Go(func() {
				defer func() { <-slots }()
				s.answer(conn)
			})
		}
	})
	return s
}

// end frees the name. Copies of the socket in a process between fork and exec accept no connections any more.
func (s *server) end() {
	s.once.Do(func() {
		if raw, err := s.listener.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { shutdown(fd) })
		}
		_ = s.listener.Close()
		close(s.ended)
	})
}

func (s *server) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(talkMax))
	var r request
	if json.NewDecoder(io.LimitReader(conn, lineBytesMax)).Decode(&r) != nil {
		return
	}
	_, user, err := credentials(conn)
	var reply any
	switch {
	case r.Take != nil:
		reply = s.take(*r.Take, err == nil && mayChange(user))
	case r.Drop != "":
		if err == nil && mayChange(user) && s.drop(r.Drop) {
			s.end() // before the answer, which says that the name is free
		}
		reply = struct{}{}
	default:
		if r.Met != nil && s.met != nil {
			s.met(*r.Met)
		}
		s.mu.Lock()
		reply = struct{ Holder Holder }{s.holder}
		s.mu.Unlock()
	}
	if text, err := json.Marshal(reply); err == nil {
		_, _ = conn.Write(append(text, '\n'))
	}
}
