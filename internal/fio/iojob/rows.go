package iojob

import (
	"github.com/braggdev/bragg/internal/fio/fioreport"
)

// report builds the rows from all intervals delivered so far.
func (r *runner) report() *fioreport.Report {
	now := r.axis.now()
	out := &fioreport.Report{Started: r.axis.zero(), Elapsed: now, Disks: r.disks.Used(now)}
	var open *fioreport.RowBuilder
	period := int64(r.options.Sample)
	for _, c := range r.clones {
		joins := open != nil && sameRow(&open.Row.Job, &c.job)
		if !joins {
			if open != nil {
				out.Rows = append(out.Rows, open.Finish(r.options.Sample))
			}
			open = &fioreport.RowBuilder{Row: fioreport.Row{Name: c.job.Name, Job: c.job, JobIndex: c.ordinal, PID: fioreport.PID, Number: c.number, Group: c.job.Group}}
		}
		addClone(open, c, period)
	}
	if open != nil {
		out.Rows = append(out.Rows, open.Finish(r.options.Sample))
	}
	for i := range out.Rows {
		out.Rows[i].DropAfter = r.options.DropAfter
	}
	return out
}

// addClone adds the results of one clone so far.
func addClone(b *fioreport.RowBuilder, c *clone, period int64) {
	if b.Row.Steady == nil {
		b.Row.Steady = c.judge.result() // which locks clones itself
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.Row.Clones++
	if b.Row.Engine == "" {
		b.Row.Engine = c.engine
	}
	b.Row.LogWait = max(b.Row.LogWait, c.logWait)
	if b.Row.Err == nil {
		b.Row.Err = c.err
	}
	if d := c.depth; d.Depth > 0 && b.Row.Depth == nil {
		b.Row.Depth = &d
	}
	if c.started == 0 {
		return // it has not begun
	}
	end := c.ended
	if end == 0 {
		end = max(c.tally.Last, c.started)
	}
	if b.To == 0 || c.started < b.From {
		b.From = c.started
	}
	b.To = max(b.To, end)
	b.Tally.Merge(&c.tally, period)
	b.Row.Account.Add(&c.account)
}
