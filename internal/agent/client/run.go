package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

// Run runs w on the agent; see load.Runner. It survives lost connections if the client can redial: intervals of that
// time arrive afterwards, each once. If the agent had to discard some, Run returns an error that says so.
func (c *Client) Run(ctx context.Context, w load.Workload, sink load.Sink) error {
	if ctx.Err() != nil {
		return nil
	}
	return newFollower(c, w, sink).run(ctx)
}

// Prepare prepares w on the agent, where it waits for its start; see load.Preparer.
func (c *Client) Prepare(ctx context.Context, w load.Workload, sink load.Sink) (load.Held, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &held{follower: newFollower(c, w, sink), cancel: cancel, done: make(chan error, 1)}
	h.follower.ready, h.follower.start = make(chan struct{}), make(chan time.Time, 1)
	go func() { h.done <- h.follower.run(ctx) }()
	select {
	case <-h.follower.ready:
		return h, nil
	case err := <-h.done:
		cancel()
		if err == nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
}

// held is a workload that waits on its agent.
type held struct {
	follower *follower
	cancel   context.CancelFunc
	done     chan error
}

// Timing says how far the agent is.
func (h *held) Timing() load.Timing {
	now := time.Now()
	c := h.follower.client
	r, ok := c.clock.Best(now)
	t := load.Timing{Trip: r.Trip}
	if ok && !c.options.Zero.IsZero() {
		t.ClockError = r.Uncertainty(now)
	}
	return t
}

// Ports returns where the servers of the workload answer; see load.Server.
func (h *held) Ports() []int { return h.follower.ports }

// Run starts the workload and follows it to its end.
func (h *held) Run(ctx context.Context, at time.Time) error {
	defer h.cancel()
	stopped := context.AfterFunc(ctx, h.cancel)
	defer stopped()
	h.follower.start <- at
	return h.ended()
}

// Split ends the interval of the workload at a time; see load.Splitter.
func (h *held) Split(ctx context.Context, at time.Time) error {
	f := h.follower
	r, ok := f.client.clock.Best(time.Now())
	if !ok {
		return fmt.Errorf("split intervals of workload %q: the agent's clock is unknown", f.workload.Name)
	}
	path := fmt.Sprintf("%s/split?%s=%d", f.path, wire.AtKey, r.There(at))
	return f.client.call(ctx, request{http.MethodPost, path, nil}, nil)
}

// Discard gives the workload up and waits for its end.
func (h *held) Discard() {
	h.cancel()
	_ = h.ended() // by cancelling
}

func (h *held) ended() error { return <-h.done }

// follower is one run of a workload: it prepares and starts it, follows its stream over as many connections as it takes, and
// stops it.
type follower struct {
	client   *Client
	workload load.Workload
	sink     load.Sink
	path     string
	// ready is closed when the workload waits for start, which then says when; both are nil where it starts by itself.
	ready chan struct{}
	start chan time.Time
	ports []int // valid once it is ready

	placer       placer
	next         int64 // sequence that comes next
	acknowledged int64
	discarded    int64 // intervals that the agent could not keep
	end          *wire.End
}

func newFollower(c *Client, w load.Workload, sink load.Sink) *follower {
	return &follower{client: c, workload: w, sink: sink, path: "/v1/workloads/" + wire.NewID(), placer: placer{axis: &c.axis}}
}

// run does not use ctx for requests: a cancelled ctx must still let the workload stop and its last intervals arrive.
func (f *follower) run(ctx context.Context) error {
	work, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	stopper := make(chan struct{})
	stopped := context.AfterFunc(ctx, func() {
		defer close(stopper)
		f.stop(work, abandon)
	})
	defer func() {
		if !stopped() {
			abandon(nil)
			<-stopper
		}
	}()
	if err := f.prepare(work); err != nil {
		if ctx.Err() != nil && diag.ExitCode(err) == diag.ExitInterrupted {
			return nil // stopped before it began
		}
		return err
	}
	if ctx.Err() != nil {
		_ = f.stopOnce(work) // the stop may have overtaken the start
	}
	if err := f.release(ctx, work); err != nil {
		return err
	}
	if err := f.retry(work, func() error { return f.follow(work) }); err != nil {
		return err
	}
	f.forget()
	if len(f.end.Outputs) > 0 && f.client.options.Ended != nil {
		f.client.options.Ended(f.workload, f.end.Outputs)
	}
	switch {
	case f.end.Error != nil:
		return f.end.Error.Err()
	case f.discarded > 0:
		return &diag.Error{
			Code: "agent-intervals-lost", Exit: diag.ExitUndecided,
			Message: fmt.Sprintf("%d intervals were discarded by the agent while it could not be reached", f.discarded),
		}
	}
	return nil
}

// prepare hands the workload to the agent and returns once it is prepared and, without a start of its own, running.
func (f *follower) prepare(work context.Context) error {
	w, query := f.workload, url.Values{}
	if f.start != nil {
		query.Set(wire.HoldKey, "1")
	}
	if zero, known := f.client.axis.zeroUptime(); known {
		f.placer.zero = zero
		query.Set(wire.ZeroKey, strconv.FormatInt(zero, 10))
	} else {
		w.ZeroUnixNanos += f.client.offset.Load()
	}
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode workload: %w", err)
	}
	put := request{http.MethodPut, f.path, body}
	if len(query) > 0 {
		put.path += "?" + query.Encode()
	}
	var begun wire.TaskHealth
	if err := f.retry(work, func() error { return f.client.call(work, put, &begun) }); err != nil {
		return err
	}
	if want := len(w.Remote.Peers); w.Remote.Serves && len(begun.Ports) != want {
		return garbled(fmt.Errorf("%d ports of servers instead of %d", len(begun.Ports), want))
	}
	f.ports = begun.Ports
	if f.client.options.Started != nil && !w.Remote.Serves {
		f.client.options.Started(f.workload, begun.Engine)
	}
	return nil
}

// release waits for the start and tells it to the agent.
func (f *follower) release(ctx, work context.Context) error {
	if f.start == nil {
		return nil
	}
	close(f.ready)
	var at time.Time
	select {
	case at = <-f.start:
	case <-ctx.Done():
		return nil // the stream says how it ended
	}
	uptime := int64(0) // at once
	if r, ok := f.client.clock.Best(time.Now()); ok {
		uptime = max(1, r.There(at))
	}
	path := fmt.Sprintf("%s/start?%s=%d", f.path, wire.AtKey, uptime)
	return f.retry(work, func() error { return f.client.call(work, request{http.MethodPost, path, nil}, nil) })
}

const (
	retryMin = 50 * time.Millisecond
	retryMax = 2 * time.Second
)

// retry repeats do as long as the agent is lost and may be called again.
func (f *follower) retry(ctx context.Context, do func() error) error {
	delay := retryMin
	var since time.Time
	for {
		before := f.next
		err := do()
		again := errors.Is(err, load.ErrLost) && !errors.Is(err, errForgotten) && !errors.Is(err, errRestarted)
		if !again || f.client.options.Redial == nil || f.client.isOver() {
			return err
		}
		if since.IsZero() || f.next > before {
			since, delay = time.Now(), retryMin
		}
		if time.Since(since) > f.client.options.RedialFor {
			return err
		}
		if wait.For(ctx, jitter(delay)) != nil {
			return lostCause(ctx)
		}
		delay = min(2*delay, retryMax)
	}
}

func lostCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), load.ErrLost) {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", load.ErrLost, context.Cause(ctx))
}

func (f *follower) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = f.client.call(ctx, request{http.MethodDelete, f.path, nil}, nil) // an agent forgets by itself when it must
}

// follow reads one stream until its end record.
func (f *follower) follow(ctx context.Context) error {
	response, err := f.client.send(ctx, request{http.MethodGet, fmt.Sprintf("%s/intervals?from=%d", f.path, f.next), nil})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := textio.NewLineReader(response.Body, wire.LineBytesMax)
	for f.end == nil {
		text, err := lines.Next()
		if errors.Is(err, bufio.ErrTooLong) {
			return garbled(errors.New("line too long"))
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			// The stream ended early, within a line or between two: what came is incomplete.
			if ctx.Err() != nil {
				return lostCause(ctx)
			}
			return f.client.lostError(ctx, err)
		}
		f.client.silence.heard()
		if len(text) == 0 {
			continue // heartbeat
		}
		r, err := wire.Decode(text)
		if err != nil {
			return garbled(err)
		}
		if err := f.take(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// acknowledgeEvery is after how many intervals the agent hears which ones it may forget.
const acknowledgeEvery = 16

// take handles one record in its turn.
func (f *follower) take(ctx context.Context, r wire.Record) error {
	switch {
	case r.Interval != nil:
		if err := f.checkTurn(r.Interval); err != nil {
			return garbled(err)
		}
		f.next++
		if !f.client.options.Zero.IsZero() {
			r.Interval.Place(f.placer.stretch(r.Interval.StartNanos, r.Interval.LengthNanos))
		}
		f.sink.Interval(*r.Interval)
	case r.Lost != nil:
		if r.Lost.From != f.next {
			return garbled(fmt.Errorf("intervals lost from %d on, expected %d", r.Lost.From, f.next))
		}
		f.discarded += r.Lost.Through - r.Lost.From + 1
		f.next = r.Lost.Through + 1
	default:
		if r.End.Next != f.next {
			return garbled(fmt.Errorf("end after %d intervals, received %d", r.End.Next, f.next))
		}
		f.end = r.End
		return nil
	}
	if f.next-f.acknowledged >= acknowledgeEvery {
		f.acknowledge(ctx)
	}
	return nil
}

func (f *follower) checkTurn(iv *interval.Interval) error {
	w := &f.workload
	if iv.Sequence != f.next {
		return fmt.Errorf("interval %d instead of %d", iv.Sequence, f.next)
	}
	if iv.Workload != w.Name || iv.Group != w.Group || iv.VM != w.VM || iv.Instance != w.Instance {
		return fmt.Errorf("interval of workload %q on vm %q instead of %q on %q", iv.Workload, iv.VM, w.Name, w.VM)
	}
	for name := range iv.Devices {
		if !slices.ContainsFunc(w.Devices, func(d load.Device) bool { return d.Name == name }) {
			return fmt.Errorf("interval with traffic on device %q, which the workload does not have", name)
		}
	}
	return nil
}

func (f *follower) acknowledge(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	path := fmt.Sprintf("%s/acknowledge?through=%d", f.path, f.next-1)
	if f.client.call(ctx, request{http.MethodPost, path, nil}, nil) == nil {
		f.acknowledged = f.next
	}
}
