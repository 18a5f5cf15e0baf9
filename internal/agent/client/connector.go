package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/load"
)

// ErrGone is an error of Redial for an agent that will not come back: its VM has stopped.
var ErrGone = errors.New("the agent is gone")

var errClosed = errors.New("the connection to the agent is closed")

// errRestarted says that another process answers at the agent's address.
var errRestarted = fmt.Errorf("%w: agent restarted", load.ErrLost)

// dialMax bounds one attempt to make a connection and to be greeted over it: by way of ssh, it may have to start a program.
const dialMax = 30 * time.Second

// missedBeats is how many beats may be missing before a connection is given up.
const missedBeats = 3

// backoff counts attempts that failed in a row.
type backoff struct {
	failed int
	until  time.Time
}

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// note takes the outcome of an attempt.
func (b *backoff) note(ok bool) {
	if ok {
		*b = backoff{}
		return
	}
	b.until = time.Now().Add(jitter(min(pauseMax, pauseMin<<min(b.failed, 10))))
	b.failed++
}

// jitter returns between half of d and the whole.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// wait returns when the next attempt may be made.
func (b *backoff) wait(ctx context.Context, lost <-chan struct{}) error {
	pause := time.NewTimer(time.Until(b.until))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-lost:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connector keeps the connection to one agent. Requests ask connection() for the one in use. When it is lost and can be restored, the
// first of them dials, the others wait for it; should the first leave meanwhile, the attempt goes on for them. Pauses between attempts
// grow, with jitter, so that a thousand clients do not call at the same moment when a switch comes back.
type connector struct {
	dial         func(ctx context.Context) (net.Conn, error) // Options.Redial
	disconnected func(back bool, lasted time.Duration)       // Options.Disconnected, never nil
	pingEvery    time.Duration
	// welcome greets the agent over a restored connection before anything else uses it.
	welcome func(ctx context.Context, link *http.ClientConn) error
	silence silence

	dialing chan struct{} // holds one token: its holder may make a connection
	pause   backoff       // of the token's holder
	dials   sync.WaitGroup

	mu     sync.Mutex
	first  net.Conn // until it is used
	link   *http.ClientConn
	conn   net.Conn // below link
	lost   chan struct{}
	ended  bool
	gone   error // why the agent is lost for good, other than by Close
	lostAt time.Time
}

// silence is how long an agent has sent nothing. What its machine sends without it does not count: a kernel accepts connections for
// programs that are frozen, and the library for HTTP/2 answers pings when all else in the agent hangs.
type silence struct {
	born  time.Time
	after *atomic.Int64 // born, until something was heard last, nanoseconds
}

func newSilence() silence { return silence{time.Now(), new(atomic.Int64)} }

func (s silence) heard() { s.after.Store(int64(time.Since(s.born))) }

func (s silence) lasts() time.Duration { return time.Since(s.born) - time.Duration(s.after.Load()) }

func newConnector(conn net.Conn, o Options, welcome func(context.Context, *http.ClientConn) error) *connector {
	c := &connector{dial: o.Redial, disconnected: o.Disconnected, pingEvery: o.PingEvery, welcome: welcome, silence: newSilence(),
		dialing: make(chan struct{}, 1), first: conn, lost: make(chan struct{})}
	if c.disconnected == nil {
		c.disconnected = func(bool, time.Duration) {}
	}
	return c
}

// connection returns the connection in use; when there is none it makes one, if that can be done.
func (c *connector) connection(ctx context.Context) (*http.ClientConn, error) {
	select {
	case c.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	passedOn := false
	defer func() {
		if !passedOn {
			<-c.dialing
		}
	}()
	c.mu.Lock()
	conn, link, ended, gone := c.first, c.link, c.ended, c.gone
	c.first = nil
	c.mu.Unlock()
	switch {
	case gone != nil:
		return nil, gone
	case ended:
		return nil, errClosed
	case link != nil && link.Err() == nil:
		return link, nil
	case conn != nil:
		return c.connect(ctx, conn)
	case c.dial == nil:
		return nil, errClosed
	}
	c.noteDisconnect()
	if err := c.pause.wait(ctx, c.lost); err != nil {
		return nil, err
	}
	if passedOn = c.beginDial(); !passedOn {
		return nil, errClosed
	}
	return c.redialForAll(ctx)
}

// beginDial is false for a client that is closed: Close waits for dials that began before.
func (c *connector) beginDial() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.dials.Add(1)
	return true
}

// redialForAll takes over the token of a caller and makes a connection for all who wait for one. The caller waits for it as long as he
// likes: one with little time must not make every attempt end early, nor count as one that failed.
func (c *connector) redialForAll(ctx context.Context) (*http.ClientConn, error) {
	var link *http.ClientConn
	var err error
	made := make(chan struct{})
	go func() {
		defer c.dials.Done()
		defer func() { <-c.dialing }()
		defer close(made)
		link, err = c.redial(context.WithoutCancel(ctx))
		c.pause.note(err == nil)
	}()
	select {
	case <-made:
		return link, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// present returns the connection in use, and makes none.
func (c *connector) present() (*http.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.link.Err() != nil || c.ended {
		return nil, fmt.Errorf("%w: not connected", load.ErrLost)
	}
	return c.link, nil
}

// redial makes a connection and makes sure of whom it leads to.
func (c *connector) redial(ctx context.Context) (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialMax)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.lost: // the connection is no longer needed
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	conn, err := c.dial(ctx)
	if errors.Is(err, ErrGone) {
		return nil, c.giveUp(fmt.Errorf("%w: %w", load.ErrLost, err))
	}
	if err != nil {
		return nil, err
	}
	link, err := c.connect(ctx, conn)
	if err != nil {
		return nil, err
	}
	if err := c.welcome(ctx, link); err != nil {
		_ = link.Close()
		_ = conn.Close()
		return nil, err
	}
	c.noteBack()
	return link, nil
}

// connect makes an HTTP/2 connection over conn and puts it into use.
func (c *connector) connect(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	watched := &wire.WatchedConn{Conn: conn, Closed: c.connectionClosed}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: wire.HeaderBytesMax,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return watched, nil },
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: c.pingEvery, PingTimeout: missedBeats * c.pingEvery,
			WriteByteTimeout: (1 + missedBeats) * c.pingEvery,
		},
	}
	link, err := transport.NewClientConn(ctx, "http", "agent:80")
	if err != nil {
		_ = watched.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close()
		_ = link.Close()
		return nil, errClosed
	}
	c.link, c.conn = link, watched
	return link, nil
}

func (c *connector) connectionClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dial == nil || c.ended {
		c.markLost()
	}
}

// noteDisconnect tells, once, that the connection is lost.
func (c *connector) noteDisconnect() {
	c.mu.Lock()
	first := c.lostAt.IsZero()
	if first {
		c.lostAt = time.Now()
	}
	c.mu.Unlock()
	if first {
		c.disconnected(false, c.silence.lasts())
	}
}

func (c *connector) noteBack() {
	c.mu.Lock()
	away := time.Since(c.lostAt)
	c.lostAt = time.Time{}
	c.mu.Unlock()
	c.disconnected(true, away)
}

// markLost closes the channel of Lost once. The caller holds the lock.
func (c *connector) markLost() {
	select {
	case <-c.lost:
	default:
		close(c.lost)
	}
}

// Lost is closed when the agent is lost permanently: the connection is closed and cannot be restored. Detection begins
// with the first request.
func (c *connector) Lost() <-chan struct{} { return c.lost }

// Close closes the connection; all calls that wait for the agent return load.ErrLost soon. On the local target this
// ends the agent.
func (c *connector) Close() error {
	defer c.dials.Wait() // a dial ends with c.lost
	c.mu.Lock()
	first, link, conn := c.first, c.link, c.conn
	c.first, c.ended = nil, true
	c.markLost()
	c.mu.Unlock()
	if first != nil {
		return first.Close()
	}
	if link == nil {
		return nil
	}
	_ = link.Close()
	// The link closes it too, sooner or later; the second close has no error to report.
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) && c.dial == nil {
		return err
	}
	return nil
}

// isOver reports whether reconnecting is pointless.
func (c *connector) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.gone != nil
}

// giveUp notes why the agent is lost for good, and returns the first such reason.
func (c *connector) giveUp(why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = why
		c.markLost()
	}
	return c.gone
}

// drop closes a connection if it is still in use; nil: the one that is.
func (c *connector) drop(link *http.ClientConn) {
	c.mu.Lock()
	same, conn := link == nil || c.link == link, c.conn
	link = c.link
	c.mu.Unlock()
	if same && link != nil {
		_ = link.Close()
		_ = conn.Close()
	}
}

// lostError makes err, which a request met, one that says that the agent is lost, unless ctx ended.
func (c *connector) lostError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone != nil:
		return c.gone
	case errors.Is(err, load.ErrLost):
		return err
	}
	return fmt.Errorf("%w: %w", load.ErrLost, err)
}
