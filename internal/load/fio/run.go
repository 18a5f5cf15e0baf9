package fio

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/program"
)

// Bounds of waiting.
const (
	stopGrace     = 5 * time.Second // between SIGINT and SIGKILL
	boundGrace    = time.Minute     // beyond the maximum time of the jobs
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
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &recorder{axis: axis, workload: in.workload, compiled: in.compiled, meter: newMeter(in.compiled.groups), sink: sink}
	if wait := time.Duration(in.workload.StartNanos - axis.Now()); in.workload.StartNanos > 0 && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			out.begin(axis.Now())
			out.finish(axis.Now())
			return nil
		}
	}
	out.begin(axis.Now())
	p, err := in.start()
	if err != nil {
		out.finish(axis.Now())
		return fmt.Errorf("start fio for workload %q: %w", in.workload.Name, err)
	}
	err = in.follow(ctx, p, out)
	out.finish(axis.Now())
	if err != nil {
		return fmt.Errorf("run workload %q: %w", in.workload.Name, err)
	}
	return nil
}

// process is a running fio. documents is closed at the end of its output.
type process struct {
	*program.Process
	documents chan arrival
	said      *program.Tail
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
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	program.Widen(write)
	said := program.NewTail(in.workload.Devices)
	p := &process{said: said, documents: make(chan arrival)}
	// The clock and disk_util take most of fio's start; a job file may set them again.
	p.Process, err = program.Command{
		Path: in.engine.path,
		Args: []string{"--output-format=json+", "--eta=never", "--clocksource=clock_gettime", "--disk_util=0",
			"--status-interval=" + strconv.FormatInt(max(1, period.Milliseconds()), 10) + "ms", "-"},
		Stdin: strings.NewReader(in.compiled.text), Stdout: write, Stderr: said, Files: in.held,
	}.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	go func() {
		defer close(p.documents)
		defer func() { _ = read.Close() }()
		err := readDocuments(read, func(d document) { p.documents <- arrival{d, time.Now()} }, said.Line)
		if err != nil {
			said.Line("read status of fio: " + err.Error())
		}
	}()
	return p, nil
}

// follow reads documents until fio has ended. It stops fio when ctx ends or when fio exceeds the time bound of its jobs.
func (in *instance) follow(ctx context.Context, p *process, out *recorder) error {
	stop := &program.Stopper{Process: p.Process, Signal: os.Interrupt, Grace: in.grace}
	defer stop.End()
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
			out.hold(a, p.UsedCPU())
			out.effort.Join(p.Effort())
			settle.Reset(min(settleMax, intervalOf(in.workload)/10))
		case <-settle.C:
			out.release(false)
		case <-cancelled:
			cancelled = nil
			stop.Begin()
		case <-overdue:
			late = true
			stop.Begin()
		}
	}
	err := p.Wait()
	out.cpu(p.UsedCPU())
	switch {
	case ctx.Err() != nil:
		return nil
	case late:
		return fmt.Errorf("fio did not end %s after its jobs should have%s", boundGrace, p.said.Quoted())
	case err != nil:
		if program.Failed(err) {
			return fmt.Errorf("fio: %w%s", err, p.said.Quoted())
		}
		return err
	case !out.any:
		return fmt.Errorf("fio ended without a status document%s", p.said.Quoted())
	}
	return out.failed(p.said)
}

func intervalOf(w load.Workload) time.Duration {
	if w.IntervalLength > 0 {
		return w.IntervalLength
	}
	return intervalUsual
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}
