package fio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

// Bounds of waiting.
const (
	stopGrace     = 5 * time.Second // between SIGINT and SIGKILL
	boundGrace    = time.Minute     // beyond the maximum time of the jobs
	outputGrace   = 5 * time.Second // for output after the end of the process
	settleMax     = 100 * time.Millisecond
	intervalUsual = time.Second
)

// instance is one prepared fio.
type instance struct {
	engine   engine
	grace    time.Duration // between SIGINT and SIGKILL
	workload load.Workload
	compiled *compiled
	guard    blockdev.Guard
	held     []*os.File // block devices, as fio inherits them
	used     bool
}

// Close releases devices. Run starts fio, and fio has ended when Run returns.
func (in *instance) Close() error {
	in.used = true
	return in.guard.Close()
}

// Engine describes the fio in use; see load.Describer.
func (in *instance) Engine() interval.Engine { return in.engine.describe(in.compiled.loop()) }

// Run starts fio at the workload's start and turns its documents into intervals until it ends.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	in.used = true
	defer func() { _ = in.guard.Close() }() // fio has ended, and nothing was written through these descriptors
	axis := newAxis(in.workload.ZeroUnixNanos)
	out := &recorder{axis: axis, workload: in.workload, compiled: in.compiled, meter: newMeter(in.compiled.groups), sink: sink}
	if wait := time.Duration(in.workload.StartNanos - axis.now()); in.workload.StartNanos > 0 && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			out.begin(axis.now())
			out.finish(axis.now())
			return nil
		}
	}
	out.begin(axis.now())
	p, err := in.start()
	if err != nil {
		out.finish(axis.now())
		return fmt.Errorf("start fio for workload %q: %w", in.workload.Name, err)
	}
	err = in.follow(ctx, p, out)
	out.finish(axis.now())
	if err != nil {
		return fmt.Errorf("run workload %q: %w", in.workload.Name, err)
	}
	return nil
}

// process is a running fio. documents is closed at the end of its output, done after its end.
type process struct {
	cmd       *exec.Cmd
	documents chan arrival
	done      chan error
	said      *tail
	effort    effort
}

type arrival struct {
	document document
	at       time.Time
}

// start starts fio with its job file on standard input.
func (in *instance) start() (*process, error) {
	period := in.workload.IntervalLength
	if period <= 0 {
		period = intervalUsual
	}
	// The clock and disk_util take most of fio's start; a job file may set them again.
	cmd := exec.Command(in.engine.path, "--output-format=json+", "--eta=never", "--clocksource=clock_gettime", "--disk_util=0",
		"--status-interval="+strconv.FormatInt(max(1, period.Milliseconds()), 10)+"ms", "-")
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	widen(write)
	said := newTail(in.workload.Devices)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in.compiled.text), write, said
	cmd.Dir, cmd.ExtraFiles = "/", in.held
	cmd.WaitDelay = outputGrace
	dieWithUs(cmd)
	p := &process{cmd: cmd, said: said, documents: make(chan arrival), done: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		// Linux kills the child when the thread that started it ends, so that this thread stays until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.done <- cmd.Wait()
		}
	}()
	err = <-started
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	go func() {
		defer close(p.documents)
		defer func() { _ = read.Close() }()
		err := readDocuments(read, func(d document) { p.documents <- arrival{d, time.Now()} }, said.line)
		if err != nil {
			said.line("read status of fio: " + err.Error())
		}
	}()
	return p, nil
}

// follow reads documents until fio has ended. It stops fio when ctx ends or when fio exceeds the time bound of its jobs.
func (in *instance) follow(ctx context.Context, p *process, out *recorder) error {
	stop := &stopper{process: p.cmd.Process, grace: in.grace}
	defer stop.end()
	overdue := make(<-chan time.Time)
	if in.compiled.bound > 0 {
		timer := time.NewTimer(in.compiled.bound + boundGrace)
		defer timer.Stop()
		overdue = timer.C
	}
	cancelled, late := ctx.Done(), false
	settle := time.NewTimer(time.Hour)
	defer settle.Stop()
	documents := p.documents
	for documents != nil {
		select {
		case a, open := <-documents:
			if !open {
				documents = nil
				break
			}
			out.hold(a, p.cpu())
			out.effort.Join(p.effort.lap(p.cmd.Process.Pid))
			settle.Reset(min(settleMax, intervalOf(in.workload)/10))
		case <-settle.C:
			out.release(false)
		case <-cancelled:
			cancelled = nil
			stop.begin()
		case <-overdue:
			late = true
			stop.begin()
		}
	}
	err := <-p.done
	if state := p.cmd.ProcessState; state != nil {
		out.cpu(state.UserTime() + state.SystemTime())
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case late:
		return fmt.Errorf("fio did not end %s after its jobs should have%s", boundGrace, p.said.quoted())
	case err != nil:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("fio: %w%s", err, p.said.quoted())
		}
		return err
	case !out.any:
		return fmt.Errorf("fio ended without a status document%s", p.said.quoted())
	}
	return out.failed(p.said)
}

func intervalOf(w load.Workload) time.Duration {
	if w.IntervalLength > 0 {
		return w.IntervalLength
	}
	return intervalUsual
}

// stopper ends a process: with SIGINT, and with SIGKILL if it has not ended in time. Only one goroutine uses it.
type stopper struct {
	process *os.Process
	grace   time.Duration
	kill    *time.Timer
}

func (s *stopper) begin() {
	if s.kill != nil {
		return
	}
	_ = s.process.Signal(os.Interrupt)
	s.kill = time.AfterFunc(s.grace, func() { _ = s.process.Kill() })
}

func (s *stopper) end() {
	if s.kill != nil {
		s.kill.Stop()
	}
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}
