package fioreport

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/stat"
)

// Values of unified_rw_reporting.
const (
	directionsApart = iota
	directionsMixed
	directionsBoth
)

// unified returns how a row shows its directions.
func (row *Row) unified() int {
	switch valueOf(&row.Job, "unified_rw_reporting") {
	case "mixed", "1":
		return directionsMixed
	case "both", "2":
		return directionsBoth
	}
	return directionsApart
}

// mixed returns all directions as one: sums, merged histograms, and the spread of the sum of each period.
func (row *Row) mixed() (all Direction, submissions stat.Histogram) {
	all.Service, all.Response = &stat.Histogram{}, &stat.Histogram{}
	for d := range row.Directions {
		dir := &row.Directions[d]
		all.Operations += dir.Operations
		all.Bytes += dir.Bytes
		all.Runtime = max(all.Runtime, dir.Runtime)
		all.Service.Merge(dir.Service)
		all.Response.Merge(dir.Response)
		submissions.Merge(&row.Account.Submissions[d])
		for class, n := range dir.Errors {
			if all.Errors == nil {
				all.Errors = map[string]uint64{}
			}
			all.Errors[class] += n
		}
	}
	all.Bandwidth, all.IOPS = spreadsOf(row.samples, row.periodLength(), func(s *sample) (bytes, operations float64) {
		for d := range interval.DirectionCount {
			bytes += s.bytes[d]
			operations += s.operations[d]
		}
		return bytes, operations
	})
	return all, submissions
}

// periodLength returns the length of the longest period.
func (row *Row) periodLength() (nanos int64) {
	for i := range row.samples {
		nanos = max(nanos, row.samples[i].length)
	}
	return nanos
}

// shown returns the directions of a row under the names that outputs use.
func (row *Row) shown() []namedDirection {
	var out []namedDirection
	if how := row.unified(); how != directionsApart {
		all, submissions := row.mixed()
		out = append(out, namedDirection{"mixed", &all, &submissions, row.priorities(0, 1, 2)})
		if how == directionsMixed {
			return out
		}
	}
	for d := range row.Directions {
		out = append(out, namedDirection{interval.Direction(d).String(), &row.Directions[d], &row.Account.Submissions[d], row.priorities(d)})
	}
	return out
}

// namedDirection is one direction, or all of them as "mixed".
type namedDirection struct {
	name string
	*Direction
	submissions *stat.Histogram
	priorities  []measuring.PriorityLatency // nil: all operations had the same priority
}

// percentiles are the percentiles that a row shows of each kind of latency; none if they are disabled.
type percentiles struct{ slat, clat, lat []float64 }

func (row *Row) percentiles() percentiles {
	list := percentilesOf(&row.Job)
	p := percentiles{clat: list}
	if row.Job.On("slat_percentiles") {
		p.slat = list
	}
	if row.Job.On("lat_percentiles") {
		p.lat = list
	}
	if row.Job.Has("clat_percentiles") && !row.Job.On("clat_percentiles") {
		p.clat = nil
	}
	return p
}

// description is the text of the job's description.
func (row *Row) description() string { return valueOf(&row.Job, "description") }

// valueOf returns a job's value of an option, "" if it does not set it.
func valueOf(j *fiojob.Job, key string) string {
	for _, o := range j.Options {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}
