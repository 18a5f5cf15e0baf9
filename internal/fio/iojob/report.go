package iojob

import (
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/stat"
)

// Report is what came of jobs, or what has come of them so far.
type Report struct {
	Done    bool
	Started time.Time
	Elapsed time.Duration
	Rows    []Row
	Disks   []Disk
	// LogFault says which logs or intervals could not be written to their end, and why; "" when all were.
	LogFault string
}

// Row is one clone, or all clones of a group whose jobs ask for group_reporting.
type Row struct {
	Name     string
	Job      fiojob.Job `json:"-"` // the first of a group
	JobIndex int        // of Job among the jobs that were run, from 0
	Engine   string     // what did the I/O
	Clones   int
	PID      int // of the process that all clones are threads of
	Number   int // of the first clone, from 0
	Group    int
	Err      error `json:"-"` // of the first clone that failed
	// StartNanos is from when operations count, on the axis of the run whose zero is Report.Started; 0 where its turn has not come.
	StartNanos int64
	Runtime    time.Duration
	// Directions are read, write and trim.
	Directions [interval.DirectionCount]Direction
	Account    ioengine.Account
	// Due counts operations that a rate gave a time; NotIssued those of them that were still waiting at the end.
	// BacklogMax is the largest number that waited at the end of a period.
	Due, NotIssued, BacklogMax uint64
	// Stalled is how long the generator itself did not run.
	Stalled time.Duration
	// LogWait is how long a clone waited for the files of its logs, the longest of all.
	LogWait time.Duration
	// Strain tells whether it kept up.
	Strain Strain
	// DropAfter is how late operations of a rate could be before they were dropped; 0: they were worked off.
	DropAfter time.Duration `json:",omitempty"`
	// Steady is nil where no steady state was waited for.
	Steady *Steady `json:",omitempty"`

	// Depth is how a search for a queue depth stands, of the first clone that has one.
	Depth *ioengine.Depth `json:",omitempty"`

	samples []sample
}

// Direction is one direction of a row. Service counts from submission, Response from the intended start; without a rate
// they are the same.
type Direction struct {
	Operations, Bytes uint64
	Errors            map[string]uint64
	Runtime           time.Duration // 0 where nothing was done
	Service, Response *stat.Histogram
	Bandwidth, IOPS   Spread // of periods, in bytes and operations a second
}

// PerSecond returns n over the time that the direction ran.
func (d *Direction) PerSecond(n uint64) float64 {
	if d.Runtime <= 0 {
		return 0
	}
	return float64(n) / d.Runtime.Seconds()
}

// report makes the rows of what has been delivered so far.
func (r *runner) report() *Report {
	now := r.axis.now()
	out := &Report{Started: r.axis.zero(), Elapsed: now, Disks: r.disks.used(now)}
	var open *rowBuilder
	period := int64(r.options.Sample)
	for _, c := range r.clones {
		joins := open != nil && sameRow(&open.row.Job, &c.job)
		if !joins {
			if open != nil {
				out.Rows = append(out.Rows, open.finish(r.options.Sample))
			}
			open = &rowBuilder{row: Row{Name: c.job.Name, Job: c.job, JobIndex: c.ordinal, PID: pid, Number: c.number, Group: c.job.Group}}
		}
		open.add(c, period)
	}
	if open != nil {
		out.Rows = append(out.Rows, open.finish(r.options.Sample))
	}
	for i := range out.Rows {
		out.Rows[i].DropAfter = r.options.DropAfter
	}
	return out
}

// rowBuilder adds up clones.
type rowBuilder struct {
	row      Row
	tally    tally
	from, to int64
}

func (b *rowBuilder) add(c *clone, period int64) {
	if b.row.Steady == nil {
		b.row.Steady = c.judge.result() // which locks clones itself
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.row.Clones++
	if b.row.Engine == "" {
		b.row.Engine = c.engine
	}
	b.row.LogWait = max(b.row.LogWait, c.logWait)
	if b.row.Err == nil {
		b.row.Err = c.err
	}
	if d := c.depth; d.Depth > 0 && b.row.Depth == nil {
		b.row.Depth = &d
	}
	if c.started == 0 {
		return // its turn has not come
	}
	end := c.ended
	if end == 0 {
		end = max(c.tally.last, c.started)
	}
	if b.to == 0 || c.started < b.from {
		b.from = c.started
	}
	b.to = max(b.to, end)
	b.tally.merge(&c.tally, period)
	b.row.Account.Add(&c.account)
}

func (b *rowBuilder) finish(period time.Duration) Row {
	row, t := b.row, &b.tally
	row.StartNanos, row.Runtime, row.samples = b.from, time.Duration(max(0, b.to-b.from)), t.samples
	row.Due, row.NotIssued, row.BacklogMax, row.Stalled = t.due, t.never, t.backlogMax, time.Duration(t.stalled)
	row.Strain = t.strain
	t.apart, t.surveyed = row.Account.VerifyNanos > 0, row.Account.SurveyNanos > 0
	for d := range row.Directions {
		traffic, out := &t.traffic[d], &row.Directions[d]
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
