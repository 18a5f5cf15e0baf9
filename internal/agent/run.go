package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Run runs w on the agent; see load.Runner. It survives lost connections when the client can redial: intervals made
// meanwhile arrive afterwards, each once. Where the agent had to discard some, Run says so in its error.
func (c *Client) Run(ctx context.Context, w load.Workload, sink load.Sink) error {
	if ctx.Err() != nil {
		return nil
	}
	f := &follower{client: c, workload: w, sink: sink, path: "/v1/workloads/" + randomID()}
	if err := f.run(ctx); err != nil {
		return fmt.Errorf("run workload %q on vm %q: %w", w.Name, w.VM, err)
	}
	return nil
}

// follower is one Run: it starts the workload, follows its stream over as many connections as it takes, and stops it.
type follower struct {
	client   *Client
	workload load.Workload
	sink     load.Sink
	path     string

	next         int64 // sequence that comes next
	acknowledged int64
	discarded    int64 // intervals that the agent could not keep
	end          *endRecord
}

// run does not use ctx for requests: a cancelled ctx must still let the workload stop and its last intervals arrive.
func (f *follower) run(ctx context.Context) error {
	work, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	w := f.workload
	w.ZeroUnixNanos += f.client.offset.Load()
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode workload: %w", err)
	}
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
	var begun TaskHealth
	err = f.retry(work, func() error { return f.client.call(work, http.MethodPut, f.path, body, &begun) })
	if err != nil {
		if ctx.Err() != nil && diag.ExitCode(err) == diag.ExitInterrupted {
			return nil // stopped before it began
		}
		return err
	}
	if f.client.options.Started != nil {
		f.client.options.Started(f.workload, begun.Engine)
	}
	if ctx.Err() != nil {
		f.stopOnce(work) // the stop may have overtaken the start
	}
	if err := f.retry(work, func() error { return f.follow(work) }); err != nil {
		return err
	}
	f.forget()
	switch {
	case f.end.Error != nil:
		return f.end.Error.toError()
	case f.discarded > 0:
		return &diag.Error{
			Code: "agent-intervals-lost", Exit: diag.ExitUndecided,
			Message: fmt.Sprintf("%d intervals were discarded by the agent while it could not be reached", f.discarded),
		}
	}
	return nil
}

// retry repeats do as long as the agent is lost and may be called again.
func (f *follower) retry(ctx context.Context, do func() error) error {
	wait := 50 * time.Millisecond
	const waitMax = 2 * time.Second
	var since time.Time
	for {
		before := f.next
		err := do()
		again := errors.Is(err, load.ErrLost) && !errors.Is(err, errForgotten)
		if !again || f.client.options.Redial == nil || f.client.isEnded() {
			return err
		}
		if since.IsZero() || f.next > before {
			since, wait = time.Now(), 50*time.Millisecond
		}
		if time.Since(since) > f.client.options.RedialFor {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return lostCause(ctx)
		}
		wait = min(2*wait, waitMax)
	}
}

func lostCause(ctx context.Context) error {
	return fmt.Errorf("%w: %w", load.ErrLost, context.Cause(ctx))
}

func (c *Client) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// stop asks the agent to stop the workload, and abandons everything when that takes too long.
func (f *follower) stop(work context.Context, abandon context.CancelCauseFunc) {
	f.stopOnce(work)
	limit := time.NewTimer(f.client.options.StopWithin)
	defer limit.Stop()
	select {
	case <-limit.C:
		abandon(fmt.Errorf("the workload did not stop within %v", f.client.options.StopWithin))
	case <-work.Done():
	}
}

func (f *follower) stopOnce(work context.Context) {
	// An agent that is lost now learns of it through the stream: either that comes back, or Run gives up.
	_ = f.client.call(work, http.MethodPost, f.path+"/stop", nil, nil)
}

func (f *follower) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = f.client.call(ctx, http.MethodDelete, f.path, nil, nil) // an agent forgets by itself when it must
}

// follow reads one stream until its end record.
func (f *follower) follow(ctx context.Context) error {
	response, err := f.client.send(ctx, http.MethodGet, fmt.Sprintf("%s/intervals?from=%d", f.path, f.next), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reader := bufio.NewReaderSize(response.Body, 64<<10)
	for f.end == nil {
		text, err := readLine(reader, lineBytesMax)
		if errors.Is(err, errLineTooLong) {
			return garbled(err)
		}
		if err != nil {
			// The stream broke off, in the middle of a line or between two: what came is not the whole of it.
			if ctx.Err() != nil {
				return lostCause(ctx)
			}
			return f.client.lostError(ctx, err)
		}
		if len(text) == 0 {
			continue // heartbeat
		}
		r, err := decodeRecord(text)
		if err != nil {
			return garbled(err)
		}
		if err := f.take(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// take handles one record in its turn.
func (f *follower) take(ctx context.Context, r record) error {
	switch {
	case r.Interval != nil:
		if err := f.checkTurn(r.Interval); err != nil {
			return garbled(err)
		}
		f.next++
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
	if f.client.call(ctx, http.MethodPost, path, nil, nil) == nil {
		f.acknowledged = f.next
	}
}

var errLineTooLong = errors.New("line too long")

// readLine returns the next line without its end. A line that breaks off is an error, never a shorter line.
func readLine(r *bufio.Reader, bytesMax int) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(whole)+len(part) > bytesMax {
			return nil, errLineTooLong
		}
		whole = append(whole, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(whole, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
}
