// Package fioreport has the results of jobs in fio's forms: rows of clones, their merging over hosts, and text, JSON and
// terse lines as fio prints them.
//
//	intervals ──Tally, RowBuilder──▶ Report ──▶ WriteText, WriteJSON, WriteTerse
//	Reports of hosts ──Merge──▶ Clients ──▶ the same forms, as fio's client writes them
package fioreport

import (
	"errors"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/search"
	"github.com/braggdev/bragg/internal/stat"
)

// Report has the results of jobs, final or so far.
type Report struct {
	Done    bool
	Started time.Time
	Elapsed time.Duration
	Rows    []Row
	Disks   []Disk
	// LogFault says which logs or intervals are incomplete, and why; "" if none are.
	LogFault string
}

// Row is one clone, or all clones of a group whose jobs have group_reporting.
type Row struct {
	Name     string
	Job      fiojob.Job `json:"-"` // the first of a group
	JobIndex int        // of Job among the jobs that were run, from 0
	Engine   string     // the engine that did the I/O
	Clones   int
	PID      int // of the process whose threads are the clones
	Number   int // of the first clone, from 0
	Group    int
	Err      error `json:"-"` // of the first clone that failed
	// StartNanos is the time from which operations count, on the axis of the run whose zero is Report.Started; 0 if it has
	// not begun.
	StartNanos int64
	Runtime    time.Duration
	// Directions are read, write and trim.
	Directions [interval.DirectionCount]Direction
	Account    measuring.Account
	// Due counts operations with a due time from a rate; NotIssued those of them that were still waiting at the end.
	// BacklogMax is the largest number that waited at the end of a period.
	Due, NotIssued, BacklogMax uint64
	// Stalled is how long the generator was stalled.
	Stalled time.Duration
	// LogWait is how long a clone waited for the files of its logs, the maximum of all clones.
	LogWait time.Duration
	// Strain shows whether the generator kept up.
	Strain Strain
	// DropAfter is how late operations of a rate could be before they were dropped; 0: none were dropped.
	DropAfter time.Duration `json:",omitempty"`
	// Steady is nil without a steady-state criterion.
	Steady *Steady `json:",omitempty"`

	// Depth is the state of a queue depth search, of the first clone that has one.
	Depth *search.Depth `json:",omitempty"`

	samples []sample
}

// Direction is one direction of a row. Service counts from submission, Response from the intended start; without a rate
// they are the same.
type Direction struct {
	Operations, Bytes uint64
	Errors            map[string]uint64
	Runtime           time.Duration // 0 without operations
	Service, Response *stat.Histogram
	Bandwidth, IOPS   Spread // of periods, in bytes and operations per second
}

// PerSecond returns n over the time that the direction ran.
func (d *Direction) PerSecond(n uint64) float64 {
	if d.Runtime <= 0 {
		return 0
	}
	return float64(n) / d.Runtime.Seconds()
}

// RowBuilder adds up clones into a row.
type RowBuilder struct {
	Row      Row
	Tally    Tally
	From, To int64
}

func (b *RowBuilder) Finish(period time.Duration) Row {
	row, t := b.Row, &b.Tally
	row.StartNanos, row.Runtime, row.samples = b.From, time.Duration(max(0, b.To-b.From)), t.samples
	row.Due, row.NotIssued, row.BacklogMax, row.Stalled = t.Due, t.Never, t.backlogMax, time.Duration(t.Stalled)
	row.Strain = t.strain
	t.apart, t.surveyed = row.Account.VerifyNanos > 0, row.Account.SurveyNanos > 0
	for d := range row.Directions {
		traffic, out := &t.Traffic[d], &row.Directions[d]
		out.Operations, out.Bytes, out.Errors = traffic.Operations, traffic.Bytes, traffic.Errors
		out.Service, out.Response = t.latencies(interval.Direction(d))
		if traffic.Operations == 0 && traffic.ErrorCount() == 0 {
			continue
		}
		out.Runtime = row.Runtime
		out.Bandwidth, out.IOPS = t.spreads(interval.Direction(d), int64(period))
	}
	row.splitRuntimes(&row)
	return row
}

// splitRuntimes sets the time in which each direction of a row ran, of a merged row (of) or a single one: written data is
// read back afterwards, and neither these writes nor these reads take the row's whole runtime. The survey of a job that
// only reads is not part of its reads.
func (row *Row) splitRuntimes(of ...*Row) {
	back := time.Duration(row.Account.VerifyNanos)
	read, write := &row.Directions[interval.Read], &row.Directions[interval.Write]
	if back > 0 && write.Runtime > 0 {
		write.Runtime = max(time.Nanosecond, row.Runtime-back)
	}
	if read.Runtime <= 0 {
		return
	}
	apart, surveyed := true, true
	for _, r := range of {
		if r.Directions[interval.Read].Runtime > 0 {
			mixed := r.Job.ReadWrite == "rw" || r.Job.ReadWrite == "randrw"
			apart, surveyed = apart && r.Account.VerifyNanos > 0 && !mixed, surveyed && r.Account.SurveyNanos > 0
		}
	}
	switch {
	case apart:
		read.Runtime = min(row.Runtime, back)
	case surveyed:
		read.Runtime = max(time.Nanosecond, row.Runtime-time.Duration(row.Account.SurveyNanos))
	}
}

// firstErrno returns the number of the error that ended a row, or of the first error that its jobs outlived.
func (row *Row) firstErrno() int {
	if row.Err == nil && outlives(&row.Job) {
		return row.Account.FirstError
	}
	return errno(row.Err)
}

// errno returns the number of the error that ended a clone, as fio reports it; EIO if it has none.
func errno(err error) int {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number):
		return int(number)
	}
	return int(syscall.EIO)
}
