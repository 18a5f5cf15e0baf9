package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/fio/iojob/exporter"
	"github.com/braggdev/bragg/internal/textio"
)

// streams are outputs of io in addition to the report.
type streams struct {
	plan           string // a file, or "-"
	planOperations int64
	intervals      string // a file, or "-"
	intervalsEvery time.Duration
	metrics        string // address of /metrics
}

// option handles an option of the command line and reports whether it is one of these.
func (s *streams) option(key, value string) (known bool, err error) {
	switch key {
	case "plan":
		if value == "" {
			return true, usage("--plan needs a file, or - for standard output")
		}
		s.plan = value
	case "plan-operations":
		if s.planOperations, err = strconv.ParseInt(value, 10, 64); err != nil || s.planOperations < 1 {
			return true, usage("--plan-operations=%s: want how many operations of each clone the plan has at most", value)
		}
	case "intervals":
		if value == "" {
			return true, usage("--intervals needs a file, or - for standard output")
		}
		s.intervals = value
	case "intervals-every":
		with, err := fiojob.Job{}.With("runtime", value)
		if err != nil || with.Runtime <= 0 || with.Runtime%(500*time.Millisecond) != 0 {
			return true, usage("--intervals-every=%s: want a time that is a multiple of 500ms", value)
		}
		s.intervalsEvery = with.Runtime
	case "metrics-listen":
		if _, _, err := net.SplitHostPort(value); err != nil {
			return true, usage("--metrics-listen=%s: want HOST:PORT, like 127.0.0.1:9464", value)
		}
		s.metrics = value
	default:
		return false, nil
	}
	return true, nil
}

// check refuses outputs that would mix.
func (s *streams) check(output string) error {
	if s.intervals == "-" && (output == "" || output == "-") {
		return usage("--intervals=- and the report would mix on standard output; give --output=FILE too")
	}
	return nil
}

// openStreams opens the outputs that jobs fill while they run, and returns what closes them.
func openStreams(p *console.Process, s *streams, o *iojob.Options) (closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	switch s.intervals {
	case "":
	case "-":
		o.Intervals = p.Stdout
	default:
		f, err := os.Create(p.Path(s.intervals))
		if err != nil {
			return closeAll, err
		}
		o.Intervals, closers = f, append(closers, f.Close)
	}
	o.IntervalLength = s.intervalsEvery
	if s.metrics != "" {
		server, err := exporter.Listen(s.metrics)
		if err != nil {
			return closeAll, errors.Join(&diag.Error{Code: "metrics-listen", Message: "serve metrics", Err: err, Exit: diag.ExitUnavailable}, closeAll())
		}
		fmt.Fprintf(p.Stderr, "metrics: http://%s/metrics\n", server.Address())
		o.Live, closers = server.Watch, append(closers, server.Close)
	}
	return closeAll, nil
}

// writePlan writes what jobs would do without running them.
func writePlan(p *console.Process, o *invocation) error {
	out, closeOutput, err := openOutput(p, o.streams.plan)
	if err != nil {
		return err
	}
	err = iojob.WritePlan(out, o.jobs, iojob.Options{
		Folder: p.Directory, Backend: o.backend, Say: func(text string) { fmt.Fprintln(p.Stderr, textio.Lines(text)) },
		AllowDevice: o.allows, LogsAsFio: o.exact,
	}, o.streams.planOperations)
	return errors.Join(err, closeOutput())
}
