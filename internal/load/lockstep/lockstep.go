// Package lockstep lets the VMs of one load go on together, step by step, as the barrier of MPI does. It knows nothing of what a step is.
//
//	VM 1: coordinator ◀──TLS──▶ members on all VMs
//	member: Join ──▶ Step ──▶ Step ──▶ … ──▶ Leave
//	a step of the last member ──▶ the sums and minima of all members' values ──▶ all members
//
//	lockstep.go      members
//	coordinator.go   the VM that all members report to
//	wire.go          messages, and the keys of one load
//
// A member that fails, leaves or is lost ends the load on all others, with the reason. A step may take any time, because storage may;
// members are known to be alive by their heartbeats.
package lockstep

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	connectWithin = 15 * time.Second
	beatEvery     = 3 * time.Second
	// lostAfter is the silence after which an end is lost: longer than a live migration or a snapshot stops a VM.
	lostAfter   = 30 * time.Second
	sendWithin  = 10 * time.Second
	leaveWithin = 2 * time.Second
)

// ErrEnded means that another member left in good order: its runtime is over, or the load was stopped.
var ErrEnded = errors.New("another VM has ended the load")

// ValuesMax bounds the values of a step.
const ValuesMax = 16

// Together is what a step returns: the sums and the minima of the values of all members.
type Together struct {
	Sums, Minima []float64
	Last         bool // this member came last, so that its wait is the cost of the barrier alone
}

// Place is the place of a member in its load.
type Place struct {
	Address string // of the coordinator, host and port
	Name    string // of the VM, for the messages of others
	Rank    int    // from 0
	Secret  []byte // of this load
}

// Member is one VM of the load. Step and Leave are called by one goroutine at a time.
type Member struct {
	conn    *tls.Conn
	sending sync.Mutex
	step    uint64
	answers chan frame
	stop    chan struct{} // closed by Leave
	broken  chan struct{} // closed when nothing can arrive any more
	err     error         // why; set before broken is closed
	all     sync.WaitGroup
}

// Join connects to the coordinator and waits until all members have. The caller calls Leave.
func Join(ctx context.Context, p Place) (*Member, error) {
	config, err := tlsConfig(p.Secret)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: connectWithin}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("reach the coordinator of the barrier at %s: %w", p.Address, err)
	}
	m := &Member{conn: conn.(*tls.Conn), answers: make(chan frame, 1), stop: make(chan struct{}), broken: make(chan struct{})}
	m.all.Go(m.receive)
	m.all.Go(m.beat)
	if err = m.send(frame{kind: kindJoin, number: uint64(p.Rank), text: p.Name}); err == nil {
		_, err = m.await(ctx)
	}
	if err != nil {
		m.Leave(nil)
		return nil, err
	}
	return m, nil
}

// Step returns when all members have called it as often as this one. Afterwards an error is final: that of ctx; ErrEnded; or the
// failure of another member, which it names.
func (m *Member) Step(ctx context.Context, values ...float64) (Together, error) {
	m.step++
	if err := m.send(frame{kind: kindStep, number: m.step, values: values}); err != nil {
		return Together{}, m.failure(err)
	}
	f, err := m.await(ctx)
	if err != nil {
		return Together{}, err
	}
	if f.number != m.step || len(f.values) != 2*len(values) {
		return Together{}, fmt.Errorf("the coordinator of the barrier answered step %d instead of %d", f.number, m.step)
	}
	return Together{Sums: f.values[:len(values)], Minima: f.values[len(values):], Last: f.text == lastOfAll}, nil
}

// Leave ends the membership, with the reason if this VM failed. Others end too.
func (m *Member) Leave(reason error) {
	f := frame{kind: kindLeave}
	if reason != nil {
		f = frame{kind: kindFail, text: reason.Error()}
	}
	_ = m.conn.SetWriteDeadline(time.Now().Add(leaveWithin))
	_ = m.write(f)
	close(m.stop)
	_ = m.conn.Close()
	m.all.Wait()
}

func (m *Member) await(ctx context.Context) (frame, error) {
	select {
	case f := <-m.answers:
		return m.judge(f)
	case <-ctx.Done():
		return frame{}, ctx.Err()
	case <-m.broken:
	}
	select {
	case f := <-m.answers: // which arrived before the end
		return m.judge(f)
	default:
		return frame{}, m.failure(nil)
	}
}

// judge takes an answer for what it says.
func (m *Member) judge(f frame) (frame, error) {
	switch f.kind {
	case kindStep, kindJoin:
		return f, nil
	case kindLeave:
		return f, ErrEnded
	}
	return f, errors.New(f.text)
}

// failure is why the connection ended, or else err.
func (m *Member) failure(err error) error {
	select {
	case <-m.broken:
		select {
		case f := <-m.answers:
			if f.kind == kindFail || f.kind == kindLeave {
				_, err := m.judge(f)
				return err
			}
		default:
		}
		return fmt.Errorf("the VM that coordinates the barrier was lost: %w", m.err)
	case <-time.After(leaveWithin): // its reason may be on its way
		return fmt.Errorf("report to the VM that coordinates the barrier: %w", err)
	}
}

func (m *Member) receive() {
	defer close(m.broken)
	for {
		_ = m.conn.SetReadDeadline(time.Now().Add(lostAfter))
		f, err := readFrame(m.conn)
		if err != nil {
			m.err = silence(err)
			return
		}
		if f.kind == kindBeat {
			continue
		}
		select {
		case m.answers <- f:
		case <-m.stop:
			m.err = net.ErrClosed
			return
		}
	}
}

func (m *Member) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = m.send(frame{kind: kindBeat})
		case <-m.stop:
			return
		case <-m.broken:
			return
		}
	}
}

func (m *Member) send(f frame) error {
	_ = m.conn.SetWriteDeadline(time.Now().Add(sendWithin))
	return m.write(f)
}

func (m *Member) write(f frame) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	_, err := m.conn.Write(f.append(nil))
	return err
}

// silence names a deadline for what it was.
func silence(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("silent for %v", lostAfter)
	}
	return err
}
