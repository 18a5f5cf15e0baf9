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
)

// A socket's conversation: one line of JSON each way.
type request struct {
	Take *Order `json:"take,omitempty"` // nil: who holds it?
	Drop string `json:"drop,omitempty"` // the id of the lease to end
}

// Order asks for a lease of a machine, or renews it.
type Order struct {
	Holder Holder `json:"holder"`
	// Over is the id of a lease whose holder is known to be gone: it may be replaced.
	Over string `json:"over,omitempty"`
}

// Answer is what came of an Order: the lease, or who has it.
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

// Hold takes the lease of this machine for this process. While another has it, it returns a *HeldError.
func Hold(ctx context.Context, scope string, h Holder) (*Held, error) {
	s, other, err := bind(ctx, scope, h, nil)
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

// Lost is never told: what a process has of the kernel nobody takes away.
func (h *Held) Lost() <-chan Holder { return nil }

// Unlock gives the lease back.
func (h *Held) Unlock() error {
	holding.remove(h.holder.ID)
	h.end()
	h.talks.Wait()
	return nil
}

// bind makes a socket, or finds out who has it. It comes back for one that is just being given up: a process that is about to
// execute a program has copies of all sockets for a moment.
func bind(ctx context.Context, scope string, h Holder, k *keeping) (*server, *Holder, error) {
	for until := time.Now().Add(bindMax); ; {
		l, err := net.ListenUnix("unix", address(scope))
		if err == nil {
			return serve(l, h, k), nil, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, nil, fmt.Errorf("take the lease of this machine: %w", err)
		}
		other, err := ask(scope)
		if err == nil {
			return nil, &other, nil
		}
		if errors.Is(err, context.DeadlineExceeded) || time.Now().After(until) {
			return nil, &other, nil // of whom only the process id is known
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(bindPause):
		}
	}
}

// ask returns who has the lease of this machine. With an error the holder did not say, and only its process is known, or not
// even that.
func ask(scope string) (Holder, error) {
	var reply struct{ Holder Holder }
	peer, err := talk(scope, askMax, request{}, &reply)
	if err != nil {
		reply.Holder = Holder{Run: "unknown", User: "this machine", Process: Process{PID: peer}}
	}
	return reply.Holder, err
}

// talk holds one conversation with the holder of a lease, whose process id it returns.
func talk(scope string, patience time.Duration, r request, reply any) (peer int, err error) {
	conn, err := net.DialTimeout("unix", address(scope).Name, patience)
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
	listener *net.UnixListener
	keeping  *keeping // nil: the lease is that of this process
	talks    sync.WaitGroup
	ended    chan struct{}
	once     sync.Once

	mu     sync.Mutex
	holder Holder
}

func serve(l *net.UnixListener, h Holder, k *keeping) *server {
	s := &server{listener: l, holder: h, keeping: k, ended: make(chan struct{})}
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

// end frees the name. Copies of the socket that a process has which is about to execute a program take nobody in any more.
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
		s.mu.Lock()
		reply = struct{ Holder Holder }{s.holder}
		s.mu.Unlock()
	}
	if text, err := json.Marshal(reply); err == nil {
		_, _ = conn.Write(append(text, '\n'))
	}
}
