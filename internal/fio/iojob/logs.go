package iojob

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob/fiolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// openLogs creates the files of all logs before the first operation.
func (r *runner) openLogs() (*fiolog.Set, error) {
	clones := make([]fiolog.Clone, len(r.clones))
	for i, c := range r.clones {
		j := &c.job
		reduced := j.On("gtod_reduce")
		clones[i] = fiolog.Clone{
			Name: j.Name, Number: c.number + 1, Logs: j.Logs, Directions: directionsOf(j),
			NoLatency: reduced || j.On("disable_lat"), NoCompletion: reduced || j.On("disable_clat"), NoSubmission: reduced || j.On("disable_slat"),
		}
	}
	set, err := fiolog.New(clones, fiolog.Options{
		Path: r.options.path, ZeroUnixNanos: func() int64 { return r.axis.zero().UnixNano() },
		Fault: func(err error) { r.options.say("warning: %v; the load continues without it", err) },
	})
	if err != nil {
		return nil, &diag.Error{Code: "log-file", Exit: diag.ExitUnavailable, Message: "write logs", Err: err}
	}
	return set, nil
}

// checkLogs refuses logs that cannot be created, before files are laid out for hours.
func (r *runner) checkLogs() error {
	for _, c := range r.clones {
		logs := &c.job.Logs
		for _, log := range []*fiojob.Log{&logs.Bandwidth, &logs.Latency, &logs.IOPS, &logs.Histogram} {
			if !log.On {
				continue
			}
			folder := filepath.Dir(r.options.path(cmp.Or(log.Prefix, c.job.Name)))
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return &diag.Error{
					Code: "log-folder", Exit: diag.ExitData, Message: fmt.Sprintf("write logs of job %q: no such directory: %q", c.job.Name, folder),
					Hint: "make it, or choose another prefix",
				}
			}
		}
	}
	return nil
}

// path resolves a relative name that the user gave.
func (o *Options) path(name string) string {
	if o.Folder != "" && !filepath.IsAbs(name) {
		return filepath.Join(o.Folder, name)
	}
	return name
}

func directionsOf(j *fiojob.Job) (out [interval.DirectionCount]bool) {
	rw := j.ReadWrite
	out[interval.Read] = strings.Contains(rw, "read") || rw == "rw" || rw == "randrw"
	out[interval.Write] = strings.Contains(rw, "write") || rw == "rw" || rw == "randrw"
	out[interval.Trim] = strings.Contains(rw, "trim")
	return out
}

// observe connects a clone with its logs, and measures how long submission takes if a log needs it.
func (r *runner) observe(c *clone, run ioengine.Run) {
	j := &c.job
	if recorder := r.logs.Recorder(c.number); recorder != nil {
		run.Observe(func(string, int) ioengine.Observer { return recorder })
	}
	if (j.Logs.Latency.On || j.On("slat_percentiles")) && !j.On("disable_slat") && !j.On("gtod_reduce") {
		run.TimeSubmissions()
	}
}

// openStream starts the outputs that are read while jobs run.
func (r *runner) openStream() {
	if r.options.Intervals != nil {
		r.stream = newStream(r.clones, r.options.Intervals, cmp.Or(r.options.IntervalLength, StreamLengthDefault), r.axis.zero)
	}
	if r.options.Live != nil {
		r.options.Live(r.live)
	}
}

// closeOutputs writes the rest of logs and intervals, and returns an error if parts of them are missing.
func (r *runner) closeOutputs() error {
	r.warnOfWaits()
	err := r.logs.Close()
	if r.stream != nil {
		err = errors.Join(err, r.stream.close())
	}
	return err
}

// deliver passes on an interval of a clone.
func (r *runner) deliver(c *clone, iv *interval.Interval) {
	c.add(iv)
	if r.stream != nil {
		r.stream.add(c, iv)
	}
}

// finish ends the outputs of a clone.
func (r *runner) finish(c *clone) {
	if r.stream != nil {
		r.stream.finish(c)
	}
}

// endOutputs writes the last window of a clone's logs and its last interval.
func (r *runner) endOutputs(c *clone, end int64) {
	r.finish(c)
	recorder := r.logs.Recorder(c.number)
	if recorder == nil {
		return
	}
	recorder.End(end)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logWait = recorder.Waited()
}

// warnOfWaits warns if writing logs has slowed the load down.
func (r *runner) warnOfWaits() {
	clones, longest := 0, time.Duration(0)
	for _, c := range r.clones {
		c.mu.Lock()
		if c.logWait > 0 {
			clones++
			longest = max(longest, c.logWait)
		}
		c.mu.Unlock()
	}
	if clones > 0 {
		r.options.say("warning: %d of %d clones waited for the files of their logs, which took less than the load gave, one of them for %s",
			clones, len(r.clones), longest.Round(time.Millisecond))
	}
}
