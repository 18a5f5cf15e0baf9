// Package client is the controller's half of the agent protocol: it runs workloads on one agent, as a load.Runner, and places what
// they measure on the run's time axis.
//
//	Client.Run(workload, sink) ── PUT, start, stop ──▶ agent
//	sink ◀── follower: intervals in order, each once ◀── stream, over as many connections as it takes
//
//	client.go      requests and their errors
//	connector.go   the connection: made, lost, restored
//	run.go         one run of a workload
//	stop.go        how a workload is stopped whose agent is silent
//	clock.go       the agent's clock against the run's axis
//
// The caller makes the first connection, because it knows the address of the agent.
package client

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

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Options configure how a Client handles errors. The zero value never reconnects.
type Options struct {
	// Fence is the fencing counter of the lease under which the controller acts.
	Fence uint64
	// Redial makes a new connection after the former was lost. Nil: a lost connection is a lost agent. An error that is
	// ErrGone ends all that waits for the agent.
	Redial func(ctx context.Context) (net.Conn, error)
	// RedialFor bounds how long a lost agent is called. 0: 15 minutes.
	RedialFor time.Duration
	// StopWithin bounds how long a stopped workload may take to end, once the agent has received the request and as long as it
	// answers. 0: 60 seconds.
	StopWithin time.Duration
	// AnswerWithin bounds how long an agent may take for what it can answer at once, where its connection can be made again;
	// it is, when that time is over. 0: 30 seconds.
	AnswerWithin time.Duration
	// SilentFor bounds how long an agent may be silent once a workload is to stop, whenever the silence began; then the
	// workload is given up, and the intervals that are still there are lost. 0: as long as RedialFor.
	SilentFor time.Duration
	// Started receives the engine of a workload once it is prepared: Plan.Engine as resolved on the agent's machine. It is zero
	// if the generator adds nothing to its plan. May be nil.
	Started func(w load.Workload, engine interval.Engine)
	// Ended receives what the programs of a workload wrote, once it has ended. May be nil.
	Ended func(w load.Workload, outputs []load.Output)
	// PingEvery is the silence after which the peer is pinged; after three times that without an answer the connection is given
	// up. 0: never, because a socket pair reports its end.
	PingEvery time.Duration
	// Zero is the zero of the run's axis, with its monotonic reading. Where it is set, the agent has a clock of its own:
	// workloads are placed by the agent's uptime, intervals are moved as far as its clock drifts away from ours, and
	// ZeroUnixNanos of workloads does not count. Where not, the agent's wall clock is compared once, at Hello.
	Zero time.Time
	// Cut is called when a connection that can be restored is found lost, with the silence before that, and again once it is
	// restored, with the time that took. May be nil.
	Disconnected func(back bool, lasted time.Duration)
}

// Client is the connection to one agent. It implements load.Runner; several workloads may run at once.
type Client struct {
	*connector
	options Options
	offset  atomic.Int64 // agent's wall clock minus ours, nanoseconds; without Zero
	clock   clock.Filter
	axis    axis

	agentMu sync.Mutex
	boot    string   // of the agent that was greeted first
	orphans []string // paths of workloads that were given up and may still run there
}

var (
	_ load.Runner   = (*Client)(nil)
	_ load.Preparer = (*Client)(nil)
)

// New returns a client that uses conn and owns it.
func New(conn net.Conn, o Options) *Client {
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
	c := &Client{options: o, axis: axis{zero: o.Zero}}
	c.connector = newConnector(conn, o, c.welcome)
	return c
}

// Hello returns the identity of the agent and compares its clock with that of this process.
func (c *Client) Hello(ctx context.Context) (wire.Hello, error) {
	h, r, err := c.fastest(ctx)
	if err == nil {
		c.offset.Store(clockOffset(r.Offset, r.Trip))
	}
	return h, err
}

// exchanges make one comparison of clocks; the fastest counts.
const exchanges = 5

func (c *Client) fastest(ctx context.Context) (best wire.Hello, fastest clock.Reading, err error) {
	for i := range exchanges {
		h, r, err := c.greet(ctx)
		if err != nil {
			return wire.Hello{}, clock.Reading{}, err
		}
		if i == 0 || r.Trip < fastest.Trip {
			best, fastest = h, r
		}
	}
	return best, fastest, nil
}

// greet makes one exchange.
func (c *Client) greet(ctx context.Context) (wire.Hello, clock.Reading, error) {
	link, err := c.connection(ctx)
	if err != nil {
		return wire.Hello{}, clock.Reading{}, fmt.Errorf("greet agent: %w", c.lostError(ctx, err))
	}
	h, r, err := c.greetOver(ctx, link)
	if err != nil {
		return wire.Hello{}, clock.Reading{}, fmt.Errorf("greet agent: %w", err)
	}
	return h, r, nil
}

func (c *Client) greetOver(ctx context.Context, link *http.ClientConn) (h wire.Hello, r clock.Reading, err error) {
	sent := time.Now()
	ask := c.promptly
	if !c.known() { // its machine may still be booting
		ask = c.callOver
	}
	if err := ask(ctx, link, request{http.MethodGet, "/v1/hello", nil}, &h); err != nil {
		return h, r, err
	}
	received := time.Now()
	if h.Protocol != wire.Version {
		return h, r, &diag.Error{
			Code: "agent-version", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("agent of %q speaks protocol %d, this program %d", h.VM, h.Protocol, wire.Version),
			Hint:    "use an agent of the same release",
		}
	}
	if h.UptimeNanos < 0 || h.UptimeNanos > wire.UptimeMax || h.UnixNanos < -wire.UptimeMax || h.UnixNanos > 2*wire.UptimeMax {
		return h, r, garbled(errors.New("its clock is out of bounds"))
	}
	if err := c.checkBoot(h.Boot); err != nil {
		return h, r, err
	}
	r = c.clock.Add(sent, received, h.UptimeNanos, h.UnixNanos)
	c.axis.add(r)
	return h, r, nil
}

// welcome makes sure, over a connection that was restored, that the same agent answers.
func (c *Client) welcome(ctx context.Context, link *http.ClientConn) error {
	c.clock.Forget() // what was measured over the former connection says nothing about this one
	if _, _, err := c.greetOver(ctx, link); err != nil {
		return err
	}
	c.dropOrphans(ctx, link)
	return nil
}

// checkBoot remembers which process answered first, and refuses any other: an agent that restarted knows nothing of what ran.
func (c *Client) checkBoot(boot string) error {
	c.agentMu.Lock()
	if c.boot == "" {
		c.boot = boot
	}
	same := c.boot == boot
	c.agentMu.Unlock()
	if !same {
		return c.giveUp(errRestarted)
	}
	return nil
}

// known reports whether the agent has answered before.
func (c *Client) known() bool {
	c.agentMu.Lock()
	defer c.agentMu.Unlock()
	return c.boot != ""
}

// clockOffset returns how far the agent's clock is ahead of this process's, from one exchange. An offset within half the trip, which is
// its uncertainty, is taken for zero: two processes of one machine share a clock, and noise must not move their time axis.
func clockOffset(offset, trip time.Duration) int64 {
	if offset.Abs() <= trip/2+1 {
		return 0
	}
	return int64(offset)
}

// Health returns the state of the agent.
func (c *Client) Health(ctx context.Context) (wire.Health, error) {
	var h wire.Health
	if err := c.call(ctx, request{http.MethodGet, "/v1/health", nil}, &h); err != nil {
		return wire.Health{}, fmt.Errorf("ask agent for its health: %w", err)
	}
	return h, nil
}

// Log returns the agent's log since its start, at most the last 256 KiB.
func (c *Client) Log(ctx context.Context) (text []byte, err error) {
	response, err := c.send(ctx, request{http.MethodGet, "/v1/log", nil})
	if err != nil {
		return nil, fmt.Errorf("fetch the log of the agent: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(response.Body, wire.ReplyBytesMax)); err != nil {
		return nil, fmt.Errorf("fetch the log of the agent: %w", c.lostError(ctx, err))
	}
	return text, nil
}

// metricsBytesMax bounds one exposition. An agent's own has a few kilobytes.
const metricsBytesMax = 4 << 20

// Metrics returns the agent's own counters in Prometheus' text format, over the connection that the client has. It opens
// none: counters are unavailable while the agent is disconnected.
func (c *Client) Metrics(ctx context.Context) (text []byte, err error) {
	link, err := c.present()
	if err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", err)
	}
	response, err := c.sendOver(ctx, link, request{http.MethodGet, "/metrics", nil})
	if err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(response.Body, metricsBytesMax+1)); err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", c.lostError(ctx, err))
	}
	if len(text) > metricsBytesMax {
		return nil, fmt.Errorf("scrape the agent: more than %d bytes", metricsBytesMax)
	}
	return text, nil
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
	text, err := io.ReadAll(io.LimitReader(response.Body, wire.ReplyBytesMax))
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
	request.Header.Set(wire.FenceHeader, strconv.FormatUint(c.options.Fence, 10))
	response, err := link.RoundTrip(request)
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	c.silence.heard()
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, wire.ReplyBytesMax))
	if err != nil {
		return nil, c.lostError(ctx, err)
	}
	var userErr wire.Error
	if err := json.Unmarshal(text, &userErr); err != nil || userErr.Message == "" {
		return nil, garbled(fmt.Errorf("status %d without a reason", response.StatusCode))
	}
	if userErr.Code == wire.CodeUnknownLoad {
		return nil, errForgotten
	}
	return nil, userErr.Err()
}

// promptly makes a request that an agent answers at once. One that does not hangs, however alive its connection looks: that is given
// up, and all that waits for it calls again.
func (c *Client) promptly(ctx context.Context, link *http.ClientConn, r request, into any) error {
	if c.options.Redial == nil {
		return c.callOver(ctx, link, r, into)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.options.AnswerWithin, errHangs)
	defer cancel()
	err := c.callOver(bounded, link, r, into)
	if ctx.Err() == nil && errors.Is(context.Cause(bounded), errHangs) {
		c.drop(link)
		return errHangs
	}
	return err
}

var errHangs = fmt.Errorf("%w: it accepts connections but does not answer", load.ErrLost)

// errForgotten says that the agent restarted, or forgot the workload: its tasks are gone, and a retry cannot succeed.
var errForgotten = fmt.Errorf("%w: it restarted and does not know the workload", load.ErrLost)

// codeGarbled is of replies that follow no protocol.
const codeGarbled = "agent-garbled"

func garbled(err error) error {
	return &diag.Error{Code: codeGarbled, Message: "invalid reply of the agent", Exit: diag.ExitUnavailable, Err: err}
}
