package fio

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// document has the fields that are read from one status document of fio. All counts are cumulative.
type document struct {
	TimestampMillis int64   `json:"timestamp_ms"`
	Groups          []entry `json:"jobs"`
}

type entry struct {
	Name       string    `json:"jobname"`
	Error      int       `json:"error"`
	TotalErr   uint64    `json:"total_err"`
	FirstError int       `json:"first_error"`
	Read       direction `json:"read"`
	Write      direction `json:"write"`
	Trim       direction `json:"trim"`
}

func (e *entry) directions() [interval.DirectionCount]*direction {
	return [...]*direction{&e.Read, &e.Write, &e.Trim}
}

type direction struct {
	Bytes         uint64  `json:"io_bytes"`
	Operations    uint64  `json:"total_ios"` // including failed ones
	RuntimeMillis int64   `json:"runtime"`
	Clat          latency `json:"clat_ns"`
}

type latency struct {
	Min  uint64            `json:"min"`
	Max  uint64            `json:"max"`
	Mean float64           `json:"mean"`
	N    uint64            `json:"N"`
	Bins map[uint64]uint64 `json:"bins"` // middle of the bucket in ns → count
}

// Bounds of fio's output.
const (
	documentBytesMax = 64 << 20
	lineBytesMax     = 4 << 20
)

// readDocuments splits fio's output into documents and calls found for each; lines outside of them go to other. It always
// reads to the end of the output, so that fio never waits for a reader.
func readDocuments(r io.Reader, found func(document), other func(line string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), lineBytesMax)
	var text []byte
	inside := false
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case !inside && string(line) == "{":
			inside, text = true, append(text[:0], '{')
		case !inside:
			if len(line) > 0 {
				other(string(line))
			}
		case len(text)+len(line) > documentBytesMax:
			inside = false
		default:
			text = append(text, line...)
			if string(line) != "}" {
				continue
			}
			inside = false
			var d document
			if err := json.Unmarshal(text, &d); err != nil {
				other("unreadable status document: " + err.Error())
				continue
			}
			found(d)
		}
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, r)
		return err
	}
	return nil
}

// counts are the cumulative counts of one direction of one group, as of the last document.
type counts struct {
	operations, bytes, errors uint64
	nanos                     float64
	latencyMin, latencyMax    uint64
	bins                      map[uint64]uint64
}

// meter turns cumulative documents into Intervals.
type meter struct {
	groups []group
	last   [][interval.DirectionCount]counts
}

func newMeter(groups []group) *meter {
	return &meter{groups: groups, last: make([][interval.DirectionCount]counts, len(groups))}
}

// take returns the difference to the previous document: traffic by direction and by device.
func (m *meter) take(d document) interval.Interval {
	iv := interval.Interval{Devices: map[string]interval.DeviceTraffic{}}
	for i := range min(len(d.Groups), len(m.groups)) {
		e := &d.Groups[i]
		untimed := m.groups[i].untimed
		failed := failures(e, untimed)
		for dir, now := range e.directions() {
			t, nanos := m.last[i][dir].advance(now, failed[dir], errorClass(e), untimed)
			iv.Directions[dir].Add(&t)
			spread(iv.Devices, m.groups[i].devices, dir, interval.DeviceCount{
				Operations: t.Operations, Bytes: t.Bytes, ServiceNanos: nanos,
			})
		}
	}
	return iv
}

// failures returns the failed operations by direction. fio counts the errors of a group in one number. A failed operation
// is in total_ios but has no latency, which reveals the direction. Without latencies, all errors count for the first active
// direction.
func failures(e *entry, untimed bool) (failed [interval.DirectionCount]uint64) {
	left := e.TotalErr
	if left == 0 && e.Error != 0 {
		left = 1 // without continue_on_error fio does not count errors and stops
	}
	for d, now := range e.directions() {
		n := now.Operations
		if !untimed {
			n -= min(n, now.Clat.N)
		}
		failed[d] = min(left, n)
		left -= failed[d]
	}
	return failed
}

func errorClass(e *entry) string {
	number := e.FirstError
	if number == 0 {
		number = e.Error
	}
	if name := errnoName(number); name != "" {
		return name
	}
	return "error"
}

// advance replaces c by the cumulative counts of now and returns the difference. Counters that decreased were restarted.
func (c *counts) advance(now *direction, failed uint64, class string, untimed bool) (t interval.Traffic, nanos uint64) {
	if now.Operations < c.operations || now.Bytes < c.bytes {
		*c = counts{}
	}
	// In a ramp fio counts operations without their latencies, and starts again at its end.
	if !untimed && failed == 0 && now.Clat.N == 0 {
		*c = counts{}
		return t, 0
	}
	total := now.Clat.Mean * float64(now.Clat.N)
	t.Bytes = now.Bytes - c.bytes
	if failed > c.errors {
		t.Errors = map[string]uint64{class: failed - c.errors}
	}
	if untimed {
		all := now.Operations - c.operations
		t.Operations = all - min(all, t.ErrorCount())
	} else if h := c.histogram(&now.Clat); h.Count() > 0 {
		// An operation counts when its latency is available, which may be one document later than its bytes.
		t.Service, t.Operations = h, h.Count()
	}
	nanos = uint64(max(0, total-c.nanos))
	*c = counts{
		operations: now.Operations, bytes: now.Bytes, errors: max(failed, c.errors), nanos: total,
		latencyMin: now.Clat.Min, latencyMax: now.Clat.Max, bins: now.Clat.Bins,
	}
	return t, nanos
}

// lastBucketNanos is the start of fio's last bucket, which includes all larger values.
const lastBucketNanos = 17_045_651_456

// histogram returns the values recorded since c. If the smallest or the largest value of all changed, one of the values is
// known exactly, so that both are exact for a whole run.
func (c *counts) histogram(now *latency) *stat.Histogram {
	h := &stat.Histogram{}
	fresh := make([]uint64, 0, len(now.Bins))
	for middle, n := range now.Bins {
		if n > c.bins[middle] {
			fresh = append(fresh, middle)
		}
	}
	slices.Sort(fresh)
	for i, middle := range fresh {
		n := now.Bins[middle] - c.bins[middle]
		value := min(max(middle, now.Min), now.Max)
		if middle >= lastBucketNanos {
			value = max(middle, now.Max)
		}
		if i == 0 && (now.Min < c.latencyMin || len(c.bins) == 0) {
			h.Record(now.Min)
			n--
		}
		if i == len(fresh)-1 && n > 0 && now.Max > c.latencyMax {
			h.Record(now.Max)
			n--
		}
		h.RecordN(value, n)
	}
	return h
}

// spread divides the traffic of a group evenly over its devices, as fio's default order of files does.
func spread(devices map[string]interval.DeviceTraffic, names []string, dir int, sum interval.DeviceCount) {
	if sum == (interval.DeviceCount{}) {
		return
	}
	for i, name := range names {
		left := uint64(len(names) - i)
		part := interval.DeviceCount{
			Operations: sum.Operations / left, Bytes: sum.Bytes / left, ServiceNanos: sum.ServiceNanos / left,
		}
		t := devices[name]
		t[dir].Operations += part.Operations
		t[dir].Bytes += part.Bytes
		t[dir].ServiceNanos += part.ServiceNanos
		devices[name] = t
		sum.Operations -= part.Operations
		sum.Bytes -= part.Bytes
		sum.ServiceNanos -= part.ServiceNanos
	}
}

// started returns how long before the document its load began, in milliseconds, and false before the first operation.
func (d *document) started() (millis int64, any bool) {
	for i := range d.Groups {
		for _, dir := range d.Groups[i].directions() {
			if dir.Operations > 0 {
				millis, any = max(millis, dir.RuntimeMillis), true
			}
		}
	}
	return millis, any
}
