package interval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/stat"
)

// namesMax bounds how many different names a Decoder remembers, so that a hostile file cannot fill the memory.
const namesMax = 100_000

// Decoder reads lines that AppendJSON wrote, and any other JSON of the same meaning more slowly. It reuses memory:
// histograms, maps and gauges of an Interval are valid until the next call; names may be kept.
type Decoder struct {
	service, response [OperationsMax]stat.Histogram
	names             map[string]string
	devices           map[string]DeviceTraffic
	gauges            []float64
	r                 reader
}

// Line reads one line.
func (d *Decoder) Line(line []byte) (Interval, error) {
	if d.names == nil {
		d.names = map[string]string{}
		d.devices = map[string]DeviceTraffic{}
	}
	d.r = reader{data: line}
	iv := d.own()
	if !d.r.bad && d.r.pos == len(line) {
		return iv, nil
	}
	// Not laid out as AppendJSON does it, or wrong: the general reader judges.
	var other Interval
	if err := json.Unmarshal(line, &other); err != nil {
		return Interval{}, fmt.Errorf("read interval: %w", err)
	}
	return other, nil
}

func (d *Decoder) own() Interval {
	var iv Interval
	r := &d.r
	r.literal(`{"workload":`)
	iv.Workload = d.name()
	r.literal(`,"group":`)
	iv.Group = d.name()
	r.literal(`,"vm":`)
	iv.VM = d.name()
	r.literal(`,"instance":`)
	iv.Instance = int(r.int())
	iv.Prefill = r.optional(`,"prefill":true`)
	r.literal(`,"seq":`)
	iv.Sequence = r.int()
	r.literal(`,"start_ns":`)
	iv.StartNanos = r.int()
	r.literal(`,"length_ns":`)
	iv.LengthNanos = r.int()
	iv.Final = r.optional(`,"final":true`)
	r.literal(`,"dirs":[`)
	for i := range iv.Directions {
		if i >= DirectionCount && !r.optional(",") {
			break
		}
		if 0 < i && i < DirectionCount {
			r.literal(",")
		}
		d.traffic(i, &iv.Directions[i])
	}
	r.literal("]")
	iv.Due = r.count(`,"due":`)
	iv.NotIssued = r.count(`,"not_issued":`)
	iv.Backlog = r.count(`,"backlog":`)
	iv.InFlight = r.count(`,"in_flight":`)
	iv.StalledNanos = r.nanos(`,"stalled_ns":`)
	iv.CPUNanos = r.nanos(`,"cpu_ns":`)
	iv.BusiestNanos = r.nanos(`,"busiest_ns":`)
	iv.WaitedNanos = r.nanos(`,"waited_ns":`)
	iv.StolenNanos = r.nanos(`,"stolen_ns":`)
	iv.ThrottledNanos = r.nanos(`,"throttled_ns":`)
	if r.optional(`,"devices":{`) {
		iv.Devices = d.deviceTraffic()
	}
	if r.optional(`,"gauges":[`) {
		iv.Gauges = d.readGauges()
	}
	r.literal("}")
	return iv
}

// name reads a string and returns the one copy of it that is kept.
func (d *Decoder) name() string {
	text := d.r.plainString()
	if d.r.bad {
		return ""
	}
	if s, ok := d.names[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(d.names) < namesMax {
		d.names[s] = s
	}
	return s
}

func (d *Decoder) traffic(i int, t *Traffic) {
	r := &d.r
	r.literal("{")
	t.Operations = r.member(`"ops":`)
	t.Bytes = r.member(`"bytes":`)
	if r.named(`"errors":{`) {
		t.Errors = map[string]uint64{}
		for !r.bad {
			class := d.name()
			r.literal(":")
			t.Errors[class] = r.uint()
			if !r.optional(",") {
				break
			}
		}
		r.literal("}")
	}
	if r.named(`"service":`) {
		t.Service = d.histogram(&d.service[i])
	}
	if r.named(`"response":`) {
		t.Response = d.histogram(&d.response[i])
	}
	r.literal("}")
}

func (d *Decoder) histogram(h *stat.Histogram) *stat.Histogram {
	r := &d.r
	end := bytes.IndexByte(r.data[r.pos:], '}') // a histogram has no object and no text inside
	if r.bad || end < 0 {
		r.bad = true
		return nil
	}
	if err := h.ReadJSON(r.data[r.pos : r.pos+end+1]); err != nil {
		r.bad = true
		return nil
	}
	r.pos += end + 1
	return h
}

func (d *Decoder) deviceTraffic() map[string]DeviceTraffic {
	r := &d.r
	clear(d.devices)
	for !r.bad {
		name := d.name()
		var t DeviceTraffic
		r.literal(":[")
		for i := range t {
			if i > 0 {
				r.literal(",")
			}
			r.literal("{")
			t[i] = DeviceCount{r.member(`"ops":`), r.member(`"bytes":`), r.member(`"service_ns":`)}
			r.literal("}")
		}
		r.literal("]")
		d.devices[name] = t
		if !r.optional(",") {
			break
		}
	}
	r.literal("}")
	return d.devices
}

func (d *Decoder) readGauges() GaugeValues {
	r := &d.r
	d.gauges = d.gauges[:0]
	for !r.bad {
		v := math.NaN()
		if !r.optional("null") {
			end := bytes.IndexAny(r.data[r.pos:], ",]")
			if end < 0 || !json.Valid(r.data[r.pos:r.pos+end]) {
				r.bad = true
				break
			}
			var err error
			v, err = strconv.ParseFloat(string(r.data[r.pos:r.pos+end]), 64)
			r.bad = r.bad || err != nil // not a number, or too large for one
			r.pos += end
		}
		d.gauges = append(d.gauges, v)
		r.bad = r.bad || len(d.gauges) > GaugesMax
		if !r.optional(",") {
			break
		}
	}
	r.literal("]")
	return d.gauges
}

// reader reads tokens of the layout that AppendJSON makes. After the first that is not there, bad is set, and nothing
// that was read counts.
type reader struct {
	data []byte
	pos  int
	bad  bool
}

func (r *reader) optional(s string) bool {
	if r.bad || len(r.data)-r.pos < len(s) || string(r.data[r.pos:r.pos+len(s)]) != s {
		return false
	}
	r.pos += len(s)
	return true
}

func (r *reader) literal(s string) {
	if !r.optional(s) {
		r.bad = true
	}
}

// named is optional for a member of an object, after the comma that parts it from a member before.
func (r *reader) named(s string) bool {
	if r.pos > 0 && r.data[r.pos-1] == '{' {
		return r.optional(s)
	}
	start := r.pos
	if r.optional(",") && r.optional(s) {
		return true
	}
	r.pos = start
	return false
}

func (r *reader) member(s string) uint64 {
	if !r.named(s) {
		return 0
	}
	return r.uint()
}

func (r *reader) count(s string) uint64 {
	if !r.optional(s) {
		return 0
	}
	return r.uint()
}

func (r *reader) nanos(s string) int64 {
	if !r.optional(s) {
		return 0
	}
	return r.int()
}

func (r *reader) uint() uint64 {
	var n uint64
	start := r.pos
	for r.pos < len(r.data) {
		digit := r.data[r.pos] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + uint64(digit)
		r.pos++
	}
	// 19 digits cannot overflow, and JSON knows no leading zero.
	if digits := r.pos - start; digits == 0 || digits > 19 || digits > 1 && r.data[start] == '0' {
		r.bad = true
	}
	return n
}

func (r *reader) int() int64 {
	negative := r.optional("-")
	n := r.uint()
	if n > 1<<63-1 {
		r.bad = true
	}
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// plainString reads a string without escapes.
func (r *reader) plainString() []byte {
	r.literal(`"`)
	end := bytes.IndexByte(r.data[r.pos:], '"')
	if r.bad || end < 0 {
		r.bad = true
		return nil
	}
	text := r.data[r.pos : r.pos+end]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			r.bad = true
			return nil
		}
	}
	r.pos += end + 1
	return text
}
