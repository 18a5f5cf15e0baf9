package iperf3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// client is the measured end of a load: one process for each server.
type client struct {
	end
	used bool
}

var (
	_ load.Describer = (*client)(nil)
	_ load.Timed     = (*client)(nil)
	_ load.Teller    = (*client)(nil)
)

const (
	stopGrace = 5 * time.Second
	// endGrace is how long a test may take beyond its time: to connect, and to exchange results. Then its server does not answer.
	endGrace  = 20 * time.Second
	lookEvery = 200 * time.Millisecond
	lineMax   = 64 << 10
)

// Outputs has the commands and what the clients printed; see load.Teller.
func (c *client) Outputs() []load.Output {
	return []load.Output{{Name: "iperf3.txt", Text: c.said.String()}}
}

// Close has nothing to release.
func (c *client) Close() error {
	c.used = true
	return nil
}

// Run runs the clients; see load.Instance.
func (c *client) Run(ctx context.Context, sink load.Sink) error {
	if c.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", c.workload.Name)
	}
	c.used = true
	axis := program.NewAxis(c.workload.ZeroUnixNanos)
	axis.WaitUntil(ctx, c.workload.StartNanos)
	out := newRecord(c, sink, axis.Now())
	if ctx.Err() != nil {
		out.Finish(axis.Now())
		return nil
	}
	err := c.drive(ctx, axis, out)
	return program.Outcome(ctx, c.workload.Name, err)
}

// pair is one running client.
type pair struct {
	peer    load.Peer
	process *program.Process
	output  output
	last    *program.Tail
	text    *program.Transcript
	at      int64 // end of its last report on the axis; 0: none yet
	cpu     time.Duration
	// Of its last report: CPU time of the client in percent of one CPU, and what its streams measured.
	busy, resending   float64 // percent, per second
	roundTrip, jitter time.Duration
}

func (c *client) drive(ctx context.Context, axis program.Axis, out *record) error {
	reports := make(chan report)
	var printing sync.WaitGroup
	pairs := make([]*pair, 0, len(c.workload.Remote.Peers))
	var err error
	for i, peer := range c.workload.Remote.Peers {
		p := &pair{peer: peer, output: output{reverse: !c.config.sends}, last: program.NewTail(nil),
			text: program.NewTranscript(load.OutputBytesMax / len(c.workload.Remote.Peers))}
		command := c.config.measure(c.tool, peer, c.workload.Runtime, out.Period())
		fmt.Fprintf(c.said, "$ %s\n", command)
		sink := &lines{take: func(text string) {
			if r, complete := p.output.line(text); complete {
				r.pair, r.arrived = i, axis.Now()
				reports <- r
			}
		}}
		command.Stdout, command.Stderr = io.MultiWriter(sink, p.text), p.last
		if p.process, err = command.Start(); err != nil {
			err = fmt.Errorf("start iperf3: %w", err)
			break
		}
		pairs = append(pairs, p)
		printing.Go(func() { <-p.process.Done() })
	}
	go func() {
		printing.Wait()
		close(reports)
	}()
	out.pairs = pairs
	failed := c.follow(ctx, axis, out, reports, err != nil)
	for _, p := range pairs {
		fmt.Fprint(c.said, p.text.String())
	}
	if err == nil && ctx.Err() == nil && failed == nil && !out.cut {
		failed = out.conclude()
	}
	out.Finish(max(axis.Now()-int64(lookEvery), out.end()))
	return errors.Join(err, failed)
}

// follow takes reports until all clients have ended.
func (c *client) follow(ctx context.Context, axis program.Axis, out *record, reports <-chan report, stop bool) error {
	stops := make([]*program.Stopper, len(out.pairs))
	for i, p := range out.pairs {
		stops[i] = &program.Stopper{Process: p.process, Signal: os.Interrupt, Grace: stopGrace}
		defer stops[i].End()
	}
	begin := func() {
		for _, s := range stops {
			s.Begin()
		}
	}
	if stop {
		begin()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	over := make(<-chan time.Time)
	if r := c.workload.Runtime; r > 0 {
		whole, late := time.Duration(seconds(r))*time.Second, endGrace
		if whole == 0 {
			whole, late = r, 0 // longer than iperf3 itself runs
		}
		timer := time.NewTimer(whole + c.config.omit + late)
		defer timer.Stop()
		over = timer.C
	}
	var failed error
	cancelled := ctx.Done()
	for {
		select {
		case r, open := <-reports:
			if !open {
				return errors.Join(failed, c.outcome(ctx, out, failed != nil || stop || out.cut))
			}
			out.add(r)
		case <-tick.C:
			out.look(axis.Now())
			if failed == nil && !out.cut {
				if failed = c.early(out); failed != nil {
					begin() // one has failed
				}
			}
		case <-over:
			over = nil
			if out.cut = seconds(c.workload.Runtime) == 0; !out.cut {
				failed = errors.New("iperf3 has not ended in time: its server does not answer")
			}
			begin()
		case <-cancelled:
			cancelled = nil
			begin()
		}
	}
}

// early returns the failure of the first client that has failed while others run.
func (c *client) early(out *record) error {
	for _, p := range out.pairs {
		select {
		case <-p.process.Done():
			if err := p.failure(); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// outcome is how the clients ended, unless they were stopped.
func (c *client) outcome(ctx context.Context, out *record, stopped bool) error {
	if stopped || ctx.Err() != nil {
		return nil
	}
	for _, p := range out.pairs {
		if err := p.failure(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) failure() error {
	if err := p.process.Wait(); err != nil {
		return fmt.Errorf("iperf3 to vm %q at %s: %w%s", p.peer.VM, net.JoinHostPort(p.peer.Address, strconv.Itoa(p.peer.Port)), err, p.last.Quoted())
	}
	return nil
}

// conclude holds what was recorded of each pair against the results of iperf3.
func (c *config) conclude(p *pair, got [2]tally) error {
	o := &p.output
	if len(o.faults) > 0 || o.local == nil || o.remote == nil {
		return &diag.Error{Code: "output-incomplete", Exit: diag.ExitUndecided,
			Message: fmt.Sprintf("iperf3 to vm %q printed no results of both ends %v", p.peer.VM, o.faults)}
	}
	want := c.streams * c.directions()
	if o.streams != c.streams || len(o.local.Streams) != want || got[sent].streams+got[received].streams != want {
		return &diag.Error{Code: "streams-differ", Exit: diag.ExitUndecided, Message: fmt.Sprintf(
			"iperf3 to vm %q ran %d streams, of which %d were seen in its reports, instead of %d", p.peer.VM, len(o.local.Streams), got[sent].streams+got[received].streams, want)}
	}
	var local [2]tally
	for i, s := range o.local.Streams {
		local[c.direction(i)].bytes += s.Bytes.value
		if s.Retransmits.known && c.direction(i) == sent {
			local[sent].retransmits += s.Retransmits.value
		}
	}
	for d := range local {
		if !o.same(local[d].bytes, got[d].bytes) || local[d].retransmits != got[d].retransmits {
			return program.TotalsDiffer("recorded %d bytes and %d retransmits %s vm %q, and iperf3 reports %d and %d",
				got[d].bytes, got[d].retransmits, []string{"to", "from"}[d], p.peer.VM, local[d].bytes, local[d].retransmits)
		}
	}
	return nil
}

// lateShare and lateBytes bound what streams moved beside the reports, and iperf3 counted in its results alone.
const (
	lateShare = 100 // one part of so many
	lateBytes = 4 << 20
)

// same compares the bytes of the results with those of all reports.
func (o *output) same(results, reports uint64) bool {
	if o.threads && results > reports {
		return results-reports <= max(reports/lateShare, lateBytes)
	}
	return results == reports
}

// direction is that of stream i: all that send come first.
func (c *config) direction(i int) int {
	if c.sends && i < c.streams {
		return sent
	}
	return received
}

// lines splits what is written to it into lines.
type lines struct {
	take func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if len(l.part) < lineMax {
			l.part = append(l.part, line...)
		}
		if rest = after; ended {
			l.take(string(l.part))
			l.part = l.part[:0]
		}
	}
	return len(p), nil
}
