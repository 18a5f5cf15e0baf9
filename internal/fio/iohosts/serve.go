package iohosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/textio"
)

// Program has what the host's half needs from its process.
type Program struct {
	Arguments    []string // after Verb
	Version      string
	Surroundings Surroundings
	Executable   string
	In           io.Reader
	Out          io.Writer
	Errors       io.Writer
	// Exit ends the process at once if operations hang and are no longer waited for.
	Exit func(code int)
}

// server is the host's half of one connection.
type server struct {
	program  Program
	hostname string
	birth    time.Time // zero of the host's clock
	end      context.CancelFunc
	ordered  atomic.Bool // jobs were received: one connection has one run
	to       io.Writer   // the controller, once jobs were received
	starts   chan start
	sent     []int // periods of each row that were sent
}

// Serve is the host's half: it runs one order of the controller at the other end of its input and output, and returns the
// exit code. When the input ends, the load ends at once.
func Serve(ctx context.Context, p Program) int {
	if len(p.Arguments) == 1 && p.Arguments[0] == sshlink.Check {
		return diag.ExitPass // the check was only whether it can be started
	}
	// A write to a controller that is gone must not end the process before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	if err := sshlink.RemoveOwn(p.Executable, p.Arguments); err != nil {
		fmt.Fprintln(p.Errors, "bragg: remove what was copied:", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	s := &server{program: p, hostname: hostname, birth: time.Now(), starts: make(chan start, 1)}
	ctx, s.end = context.WithCancel(ctx)
	defer s.end()
	if err := rpc.Serve(ctx, rpc.Join(p.In, p.Out), silenceMax, s.serve); err != nil {
		return diag.ExitUnavailable
	}
	if !s.ordered.Load() {
		return diag.ExitInterrupted
	}
	return diag.ExitPass
}

func (s *server) serve(ctx context.Context, text []byte, stream net.Conn) {
	var r request
	if json.Unmarshal(text, &r) != nil {
		return
	}
	switch r.Operation {
	case opHello:
		s.greet(stream)
	case opRun:
		s.run(ctx, stream)
	}
}

// greet sends the host's identity and the time of its clocks, and again for each further line of the controller.
func (s *server) greet(stream io.ReadWriter) {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" if the system does not provide it
	h := hello{
		Version: s.program.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Hostname: s.hostname, Boot: strings.TrimSpace(string(boot)),
		Surroundings: s.program.Surroundings,
	}
	again := textio.NewLineReader(stream, lineBytesMax)
	for err := error(nil); err == nil; _, err = again.Next() {
		now := time.Now()
		h.UnixNanos, h.UptimeNanos = now.UnixNano(), int64(now.Sub(s.birth))
		_ = rpc.WriteLine(stream, h) // the connection detects a lost controller
	}
}

// run runs the order over a stream until it is done or the stream is closed: then the load ends, and soon after the
// process, even if operations hang.
func (s *server) run(ctx context.Context, stream net.Conn) {
	lines := textio.NewLineReader(stream, lineBytesMax)
	m, err := next(lines)
	if err != nil || m.Jobs == nil || s.ordered.Swap(true) {
		return
	}
	defer s.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.to = stream
	gone := make(chan struct{})
	go func() {
		s.listen(lines, cancel)
		cancel()
		time.AfterFunc(leaveMax, func() { s.program.Exit(diag.ExitUnavailable) })
		close(gone)
	}()
	if err := s.jobs(ctx, m.Jobs); err != nil {
		_ = send(s.to, &message{Fault: fioreport.NewWireError(err)}) // if the controller is gone, the stream has ended too
	}
	_ = send(s.to, &message{End: &struct{}{}})
	select { // the controller closes the stream when it has read everything
	case <-gone:
	case <-time.After(sshlink.HangUpMax):
	}
}

// listen reads the controller's messages until it is gone. Surplus starts are dropped.
func (s *server) listen(lines *textio.LineReader, stop func()) {
	for {
		m, err := next(lines)
		switch {
		case err != nil:
			return
		case m.Stop != nil:
			stop()
		case m.Start != nil:
			select {
			case s.starts <- *m.Start:
			default:
			}
		}
	}
}

// jobs runs the order and reports the results.
func (s *server) jobs(ctx context.Context, o *order) error {
	own := identity{number: o.Host, fileName: o.Name, hostname: s.hostname}
	file, err := o.read(own, s.program.Surroundings)
	if err != nil {
		return err
	}
	options := iojob.Options{
		Backend: o.Backend, DropAfter: o.DropAfter, Sample: o.Sample, Host: o.Host, Start: s.start, WatchEvery: time.Second, WatchSeldom: true,
		Say:        func(text string) { _ = send(s.to, &message{Say: &text}) },
		Watch:      func(r *fioreport.Report) { _ = s.report(r) }, // the next one may get through
		OpenDevice: func(path string) (*os.File, error) { return openDevice(o.Devices, path) },
		AllowDevice: func(path string) bool {
			return slices.ContainsFunc(o.Devices, func(d Device) bool { return d.Path == path })
		},
		ReadOnly: o.ReadOnly, LogsAsFio: o.Reading == syntax.Exact,
	}
	if o.SameSeed {
		options.Host = 0
	}
	report, err := iojob.Run(ctx, file.Jobs(), options)
	if report == nil {
		return err
	}
	return errors.Join(err, s.report(report))
}

// openDevice checks a device on this host with its consent, and holds it.
func openDevice(devices []Device, path string) (*os.File, error) {
	var consent blockdev.Consent
	for _, d := range devices {
		if d.Path == path {
			consent = d.Consent
		}
	}
	f, _, err := blockdev.Open(path, consent, os.O_RDWR)
	return f, err
}

// start reports that a phase is prepared, and waits for its start time.
func (s *server) start(ctx context.Context, r iojob.Ready) (time.Time, error) {
	m := ready{Phase: r.Phase}
	for _, fault := range r.Faults {
		m.Faults = append(m.Faults, fioreport.NewWireError(fault))
	}
	if err := send(s.to, &message{Ready: &m}); err != nil {
		return time.Time{}, err
	}
	for {
		select {
		case at := <-s.starts:
			if at.Phase == r.Phase {
				now := time.Now()
				return now.Add(time.Duration(at.UptimeNanos - int64(now.Sub(s.birth)))), nil
			}
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// report sends a report, preceded by the periods that the controller lacks.
func (s *server) report(r *fioreport.Report) error {
	for i := range r.Rows {
		row := &r.Rows[i]
		if i == len(s.sent) {
			s.sent = append(s.sent, 0)
		}
		if row.PeriodCount() < s.sent[i] {
			s.sent[i] = 0 // a long run joined its periods into longer ones
		}
		from := max(0, s.sent[i]-periodsOverlap)
		for from < row.PeriodCount() {
			list := row.Periods(from, periodsChunk)
			if err := send(s.to, &message{Periods: &periods{Row: i, From: from, List: list}}); err != nil {
				return err
			}
			from += len(list)
		}
		s.sent[i] = row.PeriodCount()
	}
	return send(s.to, &message{Progress: r})
}

// phasesOf returns the phase of each job: the jobs between two stonewalls share one.
func phasesOf(jobs []fiojob.Job) []int {
	out := make([]int, len(jobs))
	for i := 1; i < len(jobs); i++ {
		out[i] = out[i-1]
		if jobs[i].Stonewall {
			out[i]++
		}
	}
	return out
}
