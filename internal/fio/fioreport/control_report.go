package fioreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// jsonControl sets fio's keys for the queue depth search and for errors that the job outlived.
func (row *Row) jsonControl(j *jsonJob) {
	c := &row.Job.Control
	j.Depth, j.Percentile = row.Job.IODepth, Decimal(cmp.Or(c.LatencyPercentile, 100))
	j.Target, j.Window = int64(c.LatencyTarget), int64(c.LatencyWindow/time.Microsecond)
	if row.Depth != nil {
		j.Depth = row.Depth.Depth
		met := row.Depth.Met
		j.Bragg.LatencyMet = &met
	}
	if outlives(&row.Job) {
		total := row.errorCount()
		first := row.Account.FirstError
		j.ErrorsTotal, j.FirstError = &total, &first
		if j.Error == 0 {
			j.Error = first
		}
	}
}

// errorCount is how many operations of a row failed.
func (row *Row) errorCount() (total uint64) {
	for d := range row.Directions {
		for _, n := range row.Directions[d].Errors {
			total += n
		}
	}
	return total
}

// outlives reports whether the job continues after errors of operations.
func outlives(j *fiojob.Job) bool {
	if j.ContinueOnError != "none" && j.ContinueOnError != "" {
		return true
	}
	for _, list := range j.Control.IgnoreErrors {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// textDepth writes fio's line about the queue depth search.
func (row *Row) textDepth(b *strings.Builder) {
	c, depth, found := &row.Job.Control, row.Job.IODepth, ""
	if row.Depth != nil {
		depth = row.Depth.Depth
		if !row.Depth.Met {
			found = ", target missed"
		} else if !row.Depth.Found {
			found = ", search not ended"
		}
	}
	fmt.Fprintf(b, "     latency   : target=%d, window=%d, percentile=%.2f%%, depth=%d%s\n", c.LatencyTarget.Nanoseconds(),
		c.LatencyWindow.Microseconds(), cmp.Or(c.LatencyPercentile, 100), depth, found)
}

// backlogPolicy names what happens to late operations.
func backlogPolicy(dropAfter time.Duration) string {
	if dropAfter == 0 {
		return "work-off"
	}
	return "drop:" + dropAfter.String()
}
