package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/braggdev/bragg/internal/load"
)

// How a Client keeps its connection. Requests ask connection() for the one in use. When it is lost and can be made again, the
// first of them dials, the others wait for it; should the first leave meanwhile, the attempt goes on for them. Pauses between attempts grow, and are drawn by lot so that a thousand clients
// do not call at the same moment when a switch comes back. Whoever answers a new connection must be the process that answered
// the first: an agent that was started anew knows nothing of what ran.

var errClosed = errors.New("the connection to the agent is closed")

// errRestarted says that another process answers at the agent's address.
var errRestarted = fmt.Errorf("%w: it was started anew", load.ErrLost)

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

// connection returns the connection in use; when there is none it makes one, if that can be done.
func (c *Client) connection(ctx context.Context) (*http.ClientConn, error) {
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
	case c.options.Redial == nil:
		return nil, errClosed
	}
	c.noteCut()
	if err := c.pause.wait(ctx, c.lost); err != nil {
		return nil, err
	}
	if passedOn = c.beginDial(); !passedOn {
		return nil, errClosed
	}
	return c.redialForAll(ctx)
}

// beginDial is false for a client that is closed: Close waits for dials that began before.
func (c *Client) beginDial() bool {
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
func (c *Client) redialForAll(ctx context.Context) (*http.ClientConn, error) {
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
func (c *Client) present() (*http.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.link.Err() != nil || c.ended {
		return nil, fmt.Errorf("%w: there is no connection", load.ErrLost)
	}
	return c.link, nil
}

// redial makes a connection and makes sure of whom it leads to.
func (c *Client) redial(ctx context.Context) (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialMax)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.lost: // nobody wants the connection any more
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	conn, err := c.options.Redial(ctx)
	if errors.Is(err, ErrGone) {
		return nil, c.giveUp(err)
	}
	if err != nil {
		return nil, err
	}
	link, err := c.connect(ctx, conn)
	if err != nil {
		return nil, err
	}
	c.clock.Forget() // what was measured over the former way says nothing of this one
	if _, _, err := c.greetOver(ctx, link); err != nil {
		_ = link.Close()
		_ = conn.Close()
		return nil, err
	}
	c.noteBack()
	c.dropOrphans(ctx, link)
	return link, nil
}

// connect makes an HTTP/2 connection over conn and puts it into use.
func (c *Client) connect(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	watched := &watchedConn{Conn: conn, closed: c.connectionClosed}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: headerBytesMax,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return watched, nil },
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: c.options.PingEvery, PingTimeout: missedBeats * c.options.PingEvery,
			WriteByteTimeout: (1 + missedBeats) * c.options.PingEvery,
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

// recognise remembers who answered first, and refuses anybody else.
func (c *Client) recognise(boot string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.boot {
	case boot:
	case "":
		c.boot = boot
	default:
		c.gone = errRestarted
		c.markLost()
		return errRestarted
	}
	return nil
}

// known tells whether the agent has answered before.
func (c *Client) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.boot != ""
}

func (c *Client) connectionClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.Redial == nil || c.ended {
		c.markLost()
	}
}

// noteCut tells, once, that the connection is lost.
func (c *Client) noteCut() {
	c.mu.Lock()
	first := c.cutAt.IsZero()
	if first {
		c.cutAt = time.Now()
	}
	c.mu.Unlock()
	if first && c.options.Cut != nil {
		c.options.Cut(false, c.silence.lasts())
	}
}

func (c *Client) noteBack() {
	c.mu.Lock()
	away := time.Since(c.cutAt)
	c.cutAt = time.Time{}
	c.mu.Unlock()
	if c.options.Cut != nil {
		c.options.Cut(true, away)
	}
}

// markLost closes the channel of Lost once. The caller holds the lock.
func (c *Client) markLost() {
	select {
	case <-c.lost:
	default:
		close(c.lost)
	}
}

// Lost is closed when the agent is gone for good: the connection is closed and cannot be made again. It is noticed
// from the first request on.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close closes the connection and ends everything that waits for the agent, soon and with load.ErrLost. On the local target that
// ends the agent.
func (c *Client) Close() error {
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
	// The link closes it too, sooner or later; whoever comes second has no error to tell.
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) && c.options.Redial == nil {
		return err
	}
	return nil
}

// isOver tells whether calling again is no use.
func (c *Client) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.gone != nil
}
