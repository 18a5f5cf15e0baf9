package lockstep

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Coordinator answers the members of one load. One goroutine owns its state; each connection has one that reads.
type Coordinator struct {
	listener net.Listener
	names    []string // of members, by rank
	arrivals chan arrival
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// joinWithin is how long the first member waits for the last one.
const joinWithin = 2 * time.Minute

// arrival is a frame of a member, or the end of its connection.
type arrival struct {
	rank int
	conn *tls.Conn
	f    frame
	err  error
}

// Listen starts a coordinator on that address, or on all if that one is not of this VM. names are the VMs of its members, by rank.
// The caller calls Close.
func Listen(address string, secret []byte, names []string) (*Coordinator, error) {
	config, err := tlsConfig(secret)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(address) == nil {
		address = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil && address != "" {
		l, err = net.Listen("tcp", ":0") // the address may be that of a router before this VM
	}
	if err != nil {
		return nil, fmt.Errorf("listen for members of the barrier: %w", err)
	}
	c := &Coordinator{listener: l, names: names, arrivals: make(chan arrival)}
	ctx, cancel := context.WithCancel(context.Background()) // until Close
	c.stop = cancel
	c.all.Go(func() { c.coordinate(ctx) })
	c.all.Go(func() { c.accept(ctx, config) })
	return c, nil
}

// Port is where members connect to.
func (c *Coordinator) Port() int { return c.listener.Addr().(*net.TCPAddr).Port }

// Close ends it. Members that are left lose their coordinator.
func (c *Coordinator) Close() {
	c.stop()
	_ = c.listener.Close()
	c.all.Wait()
}

// strangersMax bounds connections, each of which may be of a stranger.
const strangersMax = 64

func (c *Coordinator) accept(ctx context.Context, config *tls.Config) {
	slots := make(chan struct{}, len(c.names)+strangersMax)
	for {
		conn, err := c.listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // out of descriptors
			continue
		}
		select {
		case slots <- struct{}{}:
			c.all.Go(func() {
				c.member(ctx, tls.Server(conn, config))
				<-slots
			})
		default:
			_ = conn.Close()
		}
	}
}

// member reads what one member sends.
func (c *Coordinator) member(ctx context.Context, conn *tls.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(connectWithin))
	first, err := readFrame(conn)
	if err != nil || first.kind != kindJoin || first.number >= uint64(len(c.names)) {
		return // a stranger, or one that went away
	}
	rank := int(first.number)
	for a := (arrival{rank: rank, conn: conn, f: first}); c.pass(ctx, a) && a.err == nil; {
		_ = conn.SetReadDeadline(time.Now().Add(lostAfter))
		a.f, a.err = readFrame(conn)
	}
}

func (c *Coordinator) pass(ctx context.Context, a arrival) bool {
	select {
	case c.arrivals <- a:
		return true
	case <-ctx.Done():
		return false
	}
}

// round is the state of the barrier.
type round struct {
	conns   []*tls.Conn // by rank, nil: it has not joined or left
	joined  int
	step    uint64 // that members wait for
	arrived []bool
	count   int
	sums    []float64
	minima  []float64
	over    *frame // sent to all that still come
}

// coordinate owns the state.
func (c *Coordinator) coordinate(ctx context.Context) {
	r := &round{conns: make([]*tls.Conn, len(c.names)), arrived: make([]bool, len(c.names)), step: 1}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var waiting <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.send(frame{kind: kindBeat})
		case <-waiting:
			waiting = nil
			if missing := c.missing(r); len(missing) > 0 && r.over == nil {
				r.end(frame{kind: kindFail, text: fmt.Sprintf("vm %s did not start within %v after the first one", strings.Join(missing, ", "), joinWithin)})
			}
		case a := <-c.arrivals:
			if waiting == nil && r.joined == 0 {
				timer := time.NewTimer(joinWithin)
				defer timer.Stop()
				waiting = timer.C
			}
			c.take(r, a)
		}
	}
}

// missing lists VMs that have not joined, as many as a message can have.
func (c *Coordinator) missing(r *round) (list []string) {
	const shownMax = 3
	for rank, conn := range r.conns {
		if conn == nil && len(list) < shownMax {
			list = append(list, fmt.Sprintf("%q", c.names[rank]))
		}
	}
	return list
}

func (c *Coordinator) take(r *round, a arrival) {
	name := c.names[a.rank]
	switch {
	case a.err != nil:
		if r.conns[a.rank] == a.conn {
			r.conns[a.rank] = nil
			r.end(frame{kind: kindFail, text: fmt.Sprintf("vm %q was lost during the training: %v", name, silence(a.err))})
		}
	case a.f.kind == kindJoin:
		c.join(r, a)
	case r.conns[a.rank] != a.conn, a.f.kind == kindBeat:
	case a.f.kind == kindLeave:
		r.conns[a.rank] = nil
		r.end(frame{kind: kindLeave, text: name})
	case a.f.kind == kindFail:
		r.conns[a.rank] = nil
		r.end(frame{kind: kindFail, text: fmt.Sprintf("vm %q ended the load: %s", name, a.f.text)})
	case a.f.kind == kindStep && r.over == nil:
		c.step(r, a)
	}
}

func (c *Coordinator) join(r *round, a arrival) {
	switch {
	case r.over != nil:
		deliver(a.conn, *r.over)
	case r.conns[a.rank] != nil:
		deliver(a.conn, frame{kind: kindFail, text: fmt.Sprintf("vm %q is in the barrier already", c.names[a.rank])})
	default:
		r.conns[a.rank] = a.conn
		if r.joined++; r.joined == len(r.conns) {
			r.send(frame{kind: kindJoin})
		}
	}
}

// step counts a member in. The last one opens the barrier.
func (c *Coordinator) step(r *round, a arrival) {
	if a.f.number != r.step || r.arrived[a.rank] || r.count > 0 && len(a.f.values) != len(r.sums) {
		r.end(frame{kind: kindFail, text: fmt.Sprintf("vm %q is at step %d of the barrier and the others at %d", c.names[a.rank], a.f.number, r.step)})
		return
	}
	if r.arrived[a.rank] = true; r.count == 0 {
		r.sums, r.minima = slices.Clone(a.f.values), slices.Clone(a.f.values)
	} else {
		for i, v := range a.f.values {
			r.sums[i], r.minima[i] = r.sums[i]+v, min(r.minima[i], v)
		}
	}
	if r.count++; r.count < len(r.conns) {
		return
	}
	open := frame{kind: kindStep, number: r.step, values: slices.Concat(r.sums, r.minima)}
	r.step, r.count = r.step+1, 0
	clear(r.arrived)
	for rank, conn := range r.conns {
		f := open
		if rank == a.rank {
			f.text = lastOfAll
		}
		deliver(conn, f)
	}
}

func (r *round) send(f frame) {
	for _, conn := range r.conns {
		if conn != nil {
			deliver(conn, f)
		}
	}
}

// end closes the barrier for all, with the first reason.
func (r *round) end(f frame) {
	if r.over == nil {
		r.over = &f
		r.send(f)
	}
}

// deliver sends a message that fits into the buffer of a socket. A member that cannot take it is found by its silence.
func deliver(conn *tls.Conn, f frame) {
	_ = conn.SetWriteDeadline(time.Now().Add(sendWithin))
	_, _ = conn.Write(f.append(nil))
}
