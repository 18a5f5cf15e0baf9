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

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// ClientOptions change what a Client does when things go wrong. The zero value never reconnects.
type ClientOptions struct {
	// Fence is the fencing counter of the lease under which the controller acts.
	Fence uint64
	// Redial makes a new connection after the former was lost. Nil: a lost connection is a lost agent. An error that is
	// ErrGone ends all that waits for the agent.
	Redial func(ctx context.Context) (net.Conn, error)
	// RedialFor bounds how long a lost agent is called. 0: 15 minutes.
	RedialFor time.Duration
	// StopWithin bounds how long a stopped workload may take to end, once the agent has heard of it and as long as it
	// answers. 0: 60 seconds.
	StopWithin time.Duration
	// AnswerWithin bounds how long an agent may take for what it can answer at once, where its connection can be made again;
	// it is, when that time is over. 0: 30 seconds.
	AnswerWithin time.Duration
	// SilentFor bounds how long an agent may be silent once a workload is to stop, whenever the silence began; then the
	// workload is given up, with the intervals that are still there. 0: as long as RedialFor.
	SilentFor time.Duration
	// Started is told what drives the load of a workload once it is prepared: what Plan.Engine is for, as it came out
	// on the agent's machine. It is zero where the generator has no more to say than its plan. May be nil.
	Started func(w load.Workload, engine interval.Engine)
	// PingEvery is after how much silence the other end is asked whether it is there; three times that without an answer,
	// and the connection is given up. 0: never, as a socket pair cannot die without a word.
	PingEvery time.Duration
	// Zero is the zero of the run's axis, with its monotonic reading. Where it is set, the agent has a clock of its own:
	// workloads are placed by the agent's uptime, intervals are moved as far as its clock drifts away from ours, and
	// ZeroUnixNanos of workloads does not count. Where not, the agent's wall clock is compared once, at Hello.
	Zero time.Time
	// Cut is told when a connection was found lost that can be made again, with how long the agent had said nothing by then; and
	// once it is made again, with how long that took. May be nil.
	Cut func(back bool, lasted time.Duration)
}

// Client is the controller's half. It implements load.Runner; several workloads may run at once.
type Client struct {
	options ClientOptions
	offset  atomic.Int64 // agent's wall clock minus ours, nanoseconds; without Zero
	clock   clock.Filter
	axis    axis

	dialing chan struct{} // holds one token: whoever has it may make a connection
	pause   backoff       // of whoever has the token
	dials   sync.WaitGroup

	mu    sync.Mutex
	first net.Conn // until it is used
	link  *http.ClientConn
	conn  net.Conn // below link
	lost  chan struct{}
	ended bool
	boot  string // of the agent that was greeted first
	gone  error  // why the agent is lost for good, other than by Close
	cutAt time.Time

	silence silence
	orphans []string // paths of workloads that were given up and may still run there
}

var (
	_ load.Runner   = (*Client)(nil)
	_ load.Preparer = (*Client)(nil)
)

// NewClient returns a client that speaks over conn and owns it from then on.
func NewClient(conn net.Conn, o ClientOptions) *Client {
	if o.RedialFor <= 0 {
		o.RedialFor = 15 * time.Minute
	}
	if o.StopWithin <= 0 {
		o.StopWithin = 60 * time.Second
	}
	if o.AnswerWithin <= 0 {
		o.AnswerWithin = 30 * time.Second
	}
	if o.SilentFor <= 0 {
		o.SilentFor = o.RedialFor
	}
	return &Client{silence: newSilence(), options: o, first: conn, lost: make(chan struct{}), dialing: make(chan struct{}, 1), axis: axis{zero: o.Zero}}
}

// Hello asks the agent who it is and compares its clock with ours.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	const exchanges = 5
	var last Hello
	best := time.Duration(-1)
	for range exchanges {
		h, r, err := c.greet(ctx)
		if err != nil {
			return Hello{}, err
		}
		if best < 0 || r.Trip < best {
			last, best = h, r.Trip
			c.offset.Store(clockOffset(r.Offset, r.Trip))
		}
	}
	return last, nil
}

// greet makes one exchange.
func (c *Client) greet(ctx context.Context) (Hello, clock.Reading, error) {
	link, err := c.connection(ctx)
	if err != nil {
		return Hello{}, clock.Reading{}, fmt.Errorf("greet agent: %w", c.lostError(ctx, err))
	}
	h, r, err := c.greetOver(ctx, link)
	if err != nil {
		return Hello{}, clock.Reading{}, fmt.Errorf("greet agent: %w", err)
	}
	return h, r, nil
}

func (c *Client) greetOver(ctx context.Context, link *http.ClientConn) (h Hello, r clock.Reading, err error) {
	sent := time.Now()
	ask := c.promptly
	if !c.known() { // its machine may still be booting
		ask = c.callOver
	}
	if err := ask(ctx, link, request{http.MethodGet, "/v1/hello", nil}, &h); err != nil {
		return h, r, err
	}
	received := time.Now()
	if h.Protocol != ProtocolVersion {
		return h, r, &diag.Error{
			Code: codeVersion, Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("agent of %q speaks protocol %d, this program %d", h.VM, h.Protocol, ProtocolVersion),
			Hint:    "use an agent of the same release",
		}
	}
	if h.UptimeNanos < 0 || h.UptimeNanos > uptimeMax || h.UnixNanos < -uptimeMax || h.UnixNanos > 2*uptimeMax {
		return h, r, garbled(errors.New("its clock is out of bounds"))
	}
	if err := c.recognise(h.Boot); err != nil {
		return h, r, err
	}
	r = c.clock.Add(sent, received, h.UptimeNanos, h.UnixNanos)
	c.axis.add(r)
	return h, r, nil
}

// clockOffset returns how far the agent's clock is ahead of ours, from one exchange. An offset within half the trip, which is
// its uncertainty, is taken for zero: two processes of one machine share a clock, and noise must not move their time axis.
func clockOffset(offset, trip time.Duration) int64 {
	if offset.Abs() <= trip/2+1 {
		return 0
	}
	return int64(offset)
}

// Health asks what the agent is doing.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	if err := c.call(ctx, request{http.MethodGet, "/v1/health", nil}, &h); err != nil {
		return Health{}, fmt.Errorf("ask agent for its health: %w", err)
	}
	return h, nil
}

// request is one operation of the protocol.
type request struct {
	method, path string
	body         []byte
}

// call makes one request. An error that the agent itself gave is returned as it was; any other means that the agent
// could not be reached and is load.ErrLost, or that ctx ended.
func (c *Client) call(ctx context.Context, r request, into any) error {
	link, err := c.connection(ctx)
	if err != nil {
		return c.lostError(ctx, err)
	}
	return c.callOver(ctx, link, r, into)
}

func (c *Client) callOver(ctx context.Context, link *http.ClientConn, r request, into any) error {
	response, err := c.sendOver(ctx, link, r)
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
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	link, err := c.connection(ctx)
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	return c.sendOver(ctx, link, r)
}

func (c *Client) sendOver(ctx context.Context, link *http.ClientConn, r request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, "http://agent"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set(fenceHeader, strconv.FormatUint(c.options.Fence, 10))
	response, err := link.RoundTrip(request)
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	c.silence.heard()
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

func garbled(err error) error {
	return &diag.Error{Code: codeGarbled, Message: "the agent sent what is no answer", Exit: diag.ExitUnavailable, Err: err}
}
