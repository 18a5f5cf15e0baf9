package iohosts

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/braggdev/bragg/internal/textio"
)

// Program is what the host's half needs of the process that it is.
type Program struct {
	Arguments    []string // behind Verb
	Version      string
	Surroundings Surroundings
	Executable   string
	In           io.Reader
	Out          io.Writer
	Errors       io.Writer
	// Exit ends the process at once when operations hang that are no longer waited for.
	Exit func(code int)
}

// server is one run on a host.
type server struct {
	program Program
	out     writer
	birth   time.Time // zero of the host's clock
	cancel  context.CancelFunc
	starts  chan start
	jobs    chan *order
	heard   atomic.Int64 // when the controller was last heard, in nanoseconds of the host's clock
	sent    []int        // periods of each row that were sent
}

// Serve is the host's half: it runs one order of the controller at the other end of its input and output, and returns the
// exit code. When the input ends, so does the load, at once.
func Serve(ctx context.Context, p Program) int {
	if len(p.Arguments) == 1 && p.Arguments[0] == sshlink.Check {
		return diag.ExitPass // that it could be started was the question
	}
	// The controller may be gone while something is written to it; that must not end the process before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	if err := sshlink.RemoveOwn(p.Executable, p.Arguments); err != nil {
		fmt.Fprintln(p.Errors, "bragg: remove what was copied:", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{
		program: p, out: writer{to: p.Out}, birth: time.Now(), cancel: cancel, starts: make(chan start, 1), jobs: make(chan *order, 1),
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	if err := s.out.send(&message{Hello: &hello{
		Version: p.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Hostname: hostname, Boot: bootID(), Surroundings: p.Surroundings,
	}}); err != nil {
		return diag.ExitUnavailable
	}
	ended := make(chan struct{})
	go s.listen(ctx, ended)
	select {
	case <-ctx.Done():
		return diag.ExitInterrupted
	case o := <-s.jobs:
		err = s.run(ctx, o, hostname)
	}
	if err != nil {
		_ = s.out.send(&message{Fault: fioreport.NewWireError(err)}) // if the controller is gone, the input has ended too
	}
	_ = s.out.send(&message{End: &struct{}{}})
	select { // the controller closes the input when it has read everything
	case <-ended:
	case <-time.After(sshlink.HangUpMax):
	}
	return diag.ExitPass
}

// bootID tells starts of systems apart; "" where the system does not say.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (s *server) now() int64 { return int64(time.Since(s.birth)) }

// listen reads what the controller says, until it is gone: then the load ends, and the process soon after, whatever hangs.
func (s *server) listen(ctx context.Context, ended chan<- struct{}) {
	s.heard.Store(s.now())
	watch, stop := time.NewTicker(pingEvery), make(chan struct{})
	defer close(stop)
	go func() {
		defer watch.Stop()
		for {
			select {
			case <-stop:
				return
			case <-watch.C:
				if time.Duration(s.now()-s.heard.Load()) > silenceMax {
					s.leave()
					return
				}
			}
		}
	}()
	in := textio.NewLineReader(s.program.In, lineBytesMax)
	for {
		m, err := next(in)
		if err != nil {
			close(ended)
			s.leave()
			return
		}
		s.heard.Store(s.now())
		switch {
		case m.Ping != nil:
			now := time.Now()
			_ = s.out.send(&message{Pong: &pong{Ping: *m.Ping, MonoNanos: int64(now.Sub(s.birth)), WallNanos: now.UnixNano()}})
		case m.Stop != nil:
			s.cancel()
		case m.Jobs != nil:
			offer(ctx, s.jobs, m.Jobs)
		case m.Start != nil:
			offer(ctx, s.starts, *m.Start)
		}
	}
}

// offer hands something on, and drops it where it comes too often.
func offer[T any](ctx context.Context, to chan<- T, what T) {
	select {
	case to <- what:
	case <-ctx.Done():
	default:
	}
}

// leave ends the load now, and the process where that takes too long.
func (s *server) leave() {
	s.cancel()
	time.AfterFunc(leaveMax, func() { s.program.Exit(diag.ExitUnavailable) })
}

// run does what was ordered and reports it.
func (s *server) run(ctx context.Context, o *order, hostname string) error {
	own := identity{number: o.Host, fileName: o.Name, hostname: hostname}
	file, err := o.read(own, s.program.Surroundings)
	if err != nil {
		return err
	}
	options := iojob.Options{
		Backend: o.Backend, DropAfter: o.DropAfter, Sample: o.Sample, Host: o.Host, Start: s.start, WatchEvery: time.Second, WatchSeldom: true,
		Say:        func(text string) { _ = s.out.send(&message{Say: &text}) },
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

// openDevice checks a device on this host with what was said of it, and holds it.
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

// start says that a phase is prepared, and waits for its moment to be named.
func (s *server) start(ctx context.Context, r iojob.Ready) (time.Time, error) {
	m := ready{Phase: r.Phase}
	for _, fault := range r.Faults {
		m.Faults = append(m.Faults, fioreport.NewWireError(fault))
	}
	if err := s.out.send(&message{Ready: &m}); err != nil {
		return time.Time{}, err
	}
	for {
		select {
		case at := <-s.starts:
			if at.Phase == r.Phase {
				now := time.Now()
				return now.Add(time.Duration(at.MonoNanos - int64(now.Sub(s.birth)))), nil
			}
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// report sends a report, and before it the periods that the controller does not have.
func (s *server) report(r *fioreport.Report) error {
	for i := range r.Rows {
		row := &r.Rows[i]
		if i == len(s.sent) {
			s.sent = append(s.sent, 0)
		}
		if row.PeriodCount() < s.sent[i] {
			s.sent[i] = 0 // a long run joined its periods to longer ones
		}
		from := max(0, s.sent[i]-periodsOverlap)
		for from < row.PeriodCount() {
			list := row.Periods(from, periodsChunk)
			if err := s.out.send(&message{Periods: &periods{Row: i, From: from, List: list}}); err != nil {
				return err
			}
			from += len(list)
		}
		s.sent[i] = row.PeriodCount()
	}
	return s.out.send(&message{Progress: r})
}

// phasesOf returns the phase of each job: those between two stonewalls have one.
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
