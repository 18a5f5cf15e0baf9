package measuring

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/stat"
)

// Recorder counts the completed operations of one worker in one period. All its memory is allocated before the load
// starts; recording is a few additions. A full recorder is handed over by swapping it for an empty one.
type Recorder struct {
	dirs    [interval.DirectionCount]dirRecord
	devices []interval.DeviceTraffic // by index in Workload.Devices
	used    bool
	seen
	straddling
}

type dirRecord struct {
	operations, bytes uint64
	service           stat.Histogram
	response          stat.Histogram
	open              bool     // response is recorded
	errors            []uint64 // by error class; nil until the first error
	failed            *stat.Histogram
}

// NewRecorder makes room for every latency in the directions that are active.
func NewRecorder(active, open [interval.DirectionCount]bool, devices int) *Recorder {
	r := &Recorder{devices: make([]interval.DeviceTraffic, devices)}
	for d := range r.dirs {
		r.dirs[d].open = open[d]
		if active[d] {
			r.dirs[d].service.Reserve()
		}
		if open[d] {
			r.dirs[d].response.Reserve()
		}
	}
	return r
}

// Complete records one successful operation; now is when it was reaped.
func (r *Recorder) Complete(s *backend.Slot, now int64) {
	r.used = true
	d := &r.dirs[s.Direction]
	if s.Intended < r.split {
		r.complete(s, now, d.open)
	}
	service := uint64(max(0, now-s.Submitted))
	d.operations++
	d.bytes += uint64(s.Size)
	d.service.Record(service)
	if d.open {
		d.response.Record(uint64(max(0, now-s.Intended)))
	}
	c := &r.devices[s.Device][s.Direction]
	c.Operations++
	c.Bytes += uint64(s.Size)
	c.ServiceNanos += service
}

// Fail records one failed operation; now is when it was reaped.
func (r *Recorder) Fail(s *backend.Slot, class int, now int64) {
	r.Mismatch(s.Direction, class)
	if s.Intended < r.split {
		r.fail(s, class, now)
	}
	d := &r.dirs[s.Direction]
	if d.failed == nil {
		d.failed = &stat.Histogram{}
	}
	d.failed.Record(uint64(max(0, now-s.Intended)))
}

// Mismatch records one operation as failed that completed before, and was found to be wrong.
func (r *Recorder) Mismatch(direction uint8, class int) {
	r.used = true
	d := &r.dirs[direction]
	if d.errors == nil {
		d.errors = make([]uint64, backend.ErrorClassCount)
	}
	d.errors[class]++
}

// AddTo merges the recorder into an interval and empties it.
func (r *Recorder) AddTo(iv *interval.Interval, names []string) {
	r.reset()
	if !r.used {
		return
	}
	r.used = false
	r.addTo(iv)
	for i := range r.dirs {
		d, into := &r.dirs[i], &iv.Directions[i]
		into.Operations += d.operations
		into.Bytes += d.bytes
		d.operations, d.bytes = 0, 0
		if d.service.Count() > 0 {
			into.Service = mergeInto(into.Service, &d.service)
		}
		if d.open && d.response.Count() > 0 {
			into.Response = mergeInto(into.Response, &d.response)
		}
		if d.failed != nil && d.failed.Count() > 0 {
			into.Failed = mergeInto(into.Failed, d.failed)
		}
		for class, n := range d.errors {
			if n == 0 {
				continue
			}
			if into.Errors == nil {
				into.Errors = map[string]uint64{}
			}
			into.Errors[backend.ErrorClassName(class)] += n
			d.errors[class] = 0
		}
	}
	for i := range r.devices {
		if r.devices[i] == (interval.DeviceTraffic{}) {
			continue
		}
		if iv.Devices == nil {
			iv.Devices = map[string]interval.DeviceTraffic{}
		}
		sum := iv.Devices[names[i]]
		for d := range sum {
			sum[d].Operations += r.devices[i][d].Operations
			sum[d].Bytes += r.devices[i][d].Bytes
			sum[d].ServiceNanos += r.devices[i][d].ServiceNanos
		}
		iv.Devices[names[i]] = sum
		r.devices[i] = interval.DeviceTraffic{}
	}
}

// mergeInto adds from to a histogram that the interval owns, and empties from.
func mergeInto(into, from *stat.Histogram) *stat.Histogram {
	if into == nil {
		into = &stat.Histogram{}
	}
	into.Merge(from)
	from.Reset()
	return into
}
