package fioreport

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// mergeRows merges several rows whose runs share their axis into one. It merges histograms, never their percentiles. Rates
// are all operations over the time from the first start to the last end; minimum, maximum and deviation are those of the
// sum in each period.
func mergeRows(name string, rows []*Row, period time.Duration) Row {
	out := Row{Name: name}
	if len(rows) > 0 {
		first := rows[0]
		out = Row{Name: name, Job: first.Job, JobIndex: first.JobIndex, Engine: first.Engine, Number: first.Number, DropAfter: first.DropAfter, Group: first.Group}
	}
	whole := window{}
	for _, row := range rows {
		out.Clones += row.Clones
		if out.Err == nil {
			out.Err = row.Err
		}
		if row.Engine != out.Engine {
			out.Engine = "several"
		}
		if out.Depth == nil {
			out.Depth = row.Depth
		}
		out.Account.Add(&row.Account)
		out.Due += row.Due
		out.NotIssued += row.NotIssued
		out.BacklogMax += row.BacklogMax
		out.Stalled += row.Stalled
		out.LogWait = max(out.LogWait, row.LogWait)
		out.Strain.Add(&row.Strain)
		whole.Add(row)
	}
	out.StartNanos, out.Runtime = whole.from, whole.length()
	sum := Tally{samples: joined(rows, int64(period)), apart: out.Account.VerifyNanos > 0, surveyed: out.Account.SurveyNanos > 0}
	for d := range out.Directions {
		out.Directions[d] = mergeDirections(rows, interval.Direction(d))
		if out.Directions[d].Runtime > 0 {
			out.Directions[d].Bandwidth, out.Directions[d].IOPS = sum.spreads(interval.Direction(d), int64(period))
		}
	}
	out.splitRuntimes(rows...)
	out.samples = sum.samples
	return out
}

func mergeDirections(rows []*Row, d interval.Direction) Direction {
	var traffic interval.Traffic
	var busy window
	for _, row := range rows {
		dir := &row.Directions[d]
		traffic.Add(&interval.Traffic{
			Operations: dir.Operations, Bytes: dir.Bytes, Errors: dir.Errors, Service: dir.Service, Response: dir.Response,
		})
		if dir.Runtime > 0 {
			busy.Add(row)
		}
	}
	return Direction{
		Operations: traffic.Operations, Bytes: traffic.Bytes, Errors: traffic.Errors, Runtime: busy.length(),
		Service: traffic.Service.CloneOrNew(), Response: traffic.ResponseOrService().CloneOrNew(),
	}
}

// window is the time from the first start of rows to their last end.
type window struct{ from, to int64 }

func (w *window) Add(row *Row) {
	if row.StartNanos == 0 {
		return // it has not begun
	}
	if w.to == 0 || row.StartNanos < w.from {
		w.from = row.StartNanos
	}
	w.to = max(w.to, row.StartNanos+int64(row.Runtime))
}

func (w *window) length() time.Duration { return time.Duration(w.to - w.from) }

func joined(rows []*Row, period int64) []sample {
	var lists [][]sample
	for _, row := range rows {
		lists = append(lists, row.samples)
	}
	return joinSamples(period, lists...)
}
