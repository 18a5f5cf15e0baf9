package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// ClientOptions change what a Client does when things go wrong. The zero value never reconnects.
type ClientOptions struct {
	// Fence is the fencing counter of the lease under which the controller acts.
	Fence uint64
	// Redial makes a new connection after the former was lost. Nil: a lost connection is a lost agent.
	Redial func(ctx context.Context) (net.Conn, error)
	// RedialFor bounds how long a lost agent is called. 0: 15 minutes.
	RedialFor time.Duration
	// StopWithin bounds how long a stopped workload may take to end. 0: 60 seconds.
	StopWithin time.Duration
	// Started is told what drives the load of a workload once it is prepared: what Plan.Engine is for, as it came out
	// on the agent's machine. It is empty where the generator has no more to say than its plan. May be nil.
	Started func(w load.Workload, engine string)
	// PingEvery makes the client notice a connection that died without a word. 0: never, as a socket pair cannot.
	PingEvery time.Duration
}

// Client is the controller's half. It implements load.Runner; several workloads may run at once.
type Client struct {
	options ClientOptions
	offset  atomic.Int64 // agent's clock minus ours, nanoseconds

	dialing chan struct{} // holds one token: whoever has it may make a connection

	mu    sync.Mutex
	first net.Conn // until it is used
	link  *http.ClientConn
	conn  net.Conn // below link
	lost  chan struct{}
	ended bool
}

var _ load.Runner = (*Client)(nil)

// NewClient returns a client that speaks over conn and owns it from then on.
func NewClient(conn net.Conn, o ClientOptions) *Client {
	if o.RedialFor <= 0 {
		o.RedialFor = 15 * time.Minute
	}
	if o.StopWithin <= 0 {
		o.StopWithin = 60 * time.Second
	}
	return &Client{options: o, first: conn, lost: make(chan struct{}), dialing: make(chan struct{}, 1)}
}

var errClosed = errors.New("the connection to the agent is closed")

// connection returns the connection in use; when there is none it makes one, if that can be done.
func (c *Client) connection(ctx context.Context) (*http.ClientConn, error) {
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	conn, link, ended := c.first, c.link, c.ended
	c.first = nil
	c.mu.Unlock()
	switch {
	case ended:
		return nil, errClosed
	case link != nil && link.Err() == nil:
		return link, nil
	case conn == nil && c.options.Redial == nil:
		return nil, errClosed
	case conn == nil:
		var err error
		if conn, err = c.options.Redial(ctx); err != nil {
			return nil, err
		}
	}
	return c.connect(ctx, conn)
}

// connect makes an HTTP/2 connection over conn and puts it into use.
func (c *Client) connect(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	watched := &watchedConn{Conn: conn, closed: c.connectionClosed}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: headerBytesMax,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return watched, nil },
		HTTP2:       &http.HTTP2Config{SendPingTimeout: c.options.PingEvery, PingTimeout: 4 * c.options.PingEvery},
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

func (c *Client) connectionClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.Redial == nil || c.ended {
		c.markLost()
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

// Close closes the connection. On the local target that ends the agent.
func (c *Client) Close() error {
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
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// Hello asks the agent who it is and measures how far its clock is from ours.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	const exchanges = 5
	var best Hello
	bestTrip := int64(-1)
	for range exchanges {
		before := time.Now()
		var h Hello
		if err := c.call(ctx, http.MethodGet, "/v1/hello", nil, &h); err != nil {
			return Hello{}, fmt.Errorf("greet agent: %w", err)
		}
		trip := time.Since(before).Nanoseconds()
		if h.Protocol != ProtocolVersion {
			return Hello{}, &diag.Error{
				Code: codeVersion, Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("agent of %q speaks protocol %d, this program %d", h.VM, h.Protocol, ProtocolVersion),
				Hint:    "use an agent of the same release",
			}
		}
		if bestTrip < 0 || trip < bestTrip {
			best, bestTrip = h, trip
			c.offset.Store(clockOffset(before.UnixNano(), trip, h.UnixNanos))
		}
	}
	return best, nil
}

// clockOffset returns how far the agent's clock is ahead of ours, from one exchange: the agent answered at some moment
// between our sending and our receiving, so that the middle is wrong by at most half the trip. An offset within that
// bound is taken for zero: two processes of one machine share a clock, and noise must not move their time axis.
func clockOffset(sentNanos, tripNanos, agentNanos int64) int64 {
	offset := agentNanos - (sentNanos + tripNanos/2)
	if offset >= -tripNanos/2-1 && offset <= tripNanos/2+1 {
		return 0
	}
	return offset
}

// Health asks what the agent is doing.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	if err := c.call(ctx, http.MethodGet, "/v1/health", nil, &h); err != nil {
		return Health{}, fmt.Errorf("ask agent for its health: %w", err)
	}
	return h, nil
}

// call makes one request. An error that the agent itself gave is returned as it was; any other means that the agent
// could not be reached and is load.ErrLost, or that ctx ended.
func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, replyBytesMax))
	if err != nil {
		return c.lostError(ctx, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return garbled(err)
	}
	return nil
}

// send makes one request and returns a response whose status is a success.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set(fenceHeader, strconv.FormatUint(c.options.Fence, 10))
	link, err := c.connection(ctx)
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	response, err := link.RoundTrip(request)
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, replyBytesMax))
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	var told wireError
	if err := json.Unmarshal(text, &told); err != nil || told.Message == "" {
		return nil, garbled(fmt.Errorf("status %d without a reason", response.StatusCode))
	}
	if told.Code == codeUnknownLoad {
		return nil, errForgotten
	}
	return nil, told.toError()
}

// errForgotten says that the agent was restarted, or forgot: what ran there is gone, and calling again is no use.
var errForgotten = fmt.Errorf("%w: it was restarted and does not know the workload", load.ErrLost)

func (c *Client) lostError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", load.ErrLost, err)
}

func garbled(err error) error {
	return &diag.Error{Code: codeGarbled, Message: "the agent sent what is no answer", Exit: diag.ExitUnavailable, Err: err}
}
