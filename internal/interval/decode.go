package interval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/stat"
)

// namesMax bounds how many names a Decoder remembers, so that a hostile file cannot fill the memory.
const namesMax = 100_000

// Decoder reads lines that AppendJSON wrote and, more slowly, any equivalent JSON. It reuses memory: histograms, maps, gaps
// and gauges of an Interval are valid until the next call; names may be kept.
type Decoder struct {
	service, response, failed [OperationsMax]stat.Histogram
	waiting                   stat.Histogram
	names                     map[string]string
	devices                   map[string]DeviceTraffic
	gauges                    []float64
	gaps                      Gaps
	r                         reader
	folds                     *folds // of Folded; nil in Line
	keep                      bool   // in Keep
}

// Line reads one line.
func (d *Decoder) Line(line []byte) (Interval, error) {
	if d.names == nil {
		d.names = map[string]string{}
		d.devices = map[string]DeviceTraffic{}
	}
	d.r = reader{stat.Tokens{Data: line}}
	d.gaps, d.gauges = d.gaps[:0], d.gauges[:0]
	var iv Interval
	d.own(&iv)
	if !d.r.Bad && d.r.Pos == len(line) {
		return iv, nil
	}
	// The layout is not that of AppendJSON, or the line is invalid: the general reader decides.
	var other Interval
	if err := json.Unmarshal(line, &other); err != nil {
		return Interval{}, fmt.Errorf("read interval: %w", err)
	}
	return other, nil
}

// Keep reads one line that AppendJSON wrote, like Line, but the memory of the Interval is its own. false: it has another layout, or is
// invalid.
func (d *Decoder) Keep(line []byte) (iv Interval, ok bool) {
	if d.names == nil {
		d.names = map[string]string{}
	}
	d.r = reader{stat.Tokens{Data: line}}
	gaps, gauges, devices := d.gaps, d.gauges, d.devices
	d.gaps, d.gauges, d.devices, d.keep = nil, nil, nil, true
	d.own(&iv)
	d.gaps, d.gauges, d.devices, d.keep = gaps, gauges, devices, false
	return iv, !d.r.Bad && d.r.Pos == len(line)
}

func (d *Decoder) own(iv *Interval) {
	r := &d.r
	r.Literal(`{"workload":`)
	iv.Workload = d.name()
	r.Literal(`,"group":`)
	iv.Group = d.name()
	r.Literal(`,"vm":`)
	iv.VM = d.name()
	r.Literal(`,"instance":`)
	iv.Instance = int(r.int())
	iv.Prefill = r.Optional(`,"prefill":true`)
	r.Literal(`,"seq":`)
	iv.Sequence = r.int()
	r.Literal(`,"start_ns":`)
	iv.StartNanos = r.int()
	r.Literal(`,"length_ns":`)
	iv.LengthNanos = r.int()
	iv.Final = r.Optional(`,"final":true`)
	r.Literal(`,"dirs":[`)
	for i := range iv.Directions {
		if i >= DirectionCount && !r.Optional(",") {
			break
		}
		if 0 < i && i < DirectionCount {
			r.Literal(",")
		}
		d.traffic(i, &iv.Directions[i])
	}
	r.Literal("]")
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
	if r.Optional(`,"gaps_ns":[`) {
		iv.Gaps = d.readGaps()
	}
	if r.Optional(`,"waiting":`) {
		iv.Waiting = d.histogram(&d.waiting)
	}
	if r.Optional(`,"early":[`) {
		iv.Early = d.early()
	}
	if r.Optional(`,"devices":{`) {
		iv.Devices = d.deviceTraffic()
	}
	if r.Optional(`,"gauges":[`) {
		iv.Gauges = d.readGauges()
	}
	r.Literal("}")
}

// name reads a string and returns its single kept copy.
func (d *Decoder) name() string {
	text := d.r.plainString()
	if d.r.Bad {
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
	r.Literal("{")
	t.Operations = r.member(`"ops":`)
	t.Bytes = r.member(`"bytes":`)
	if r.named(`"errors":{`) {
		t.Errors = map[string]uint64{}
		for !r.Bad {
			class := d.name()
			r.Literal(":")
			t.Errors[class] = r.Uint()
			if !r.Optional(",") {
				break
			}
		}
		r.Literal("}")
	}
	if r.named(`"service":`) {
		t.Service = d.histogram(&d.service[i])
	}
	if r.named(`"response":`) {
		t.Response = d.histogram(&d.response[i])
	}
	if r.named(`"failed":`) {
		t.Failed = d.histogram(&d.failed[i])
	}
	r.Literal("}")
}

func (d *Decoder) histogram(h *stat.Histogram) *stat.Histogram {
	r := &d.r
	if d.folds != nil {
		h = d.folds.next()
		h.ReadFolded(&r.Tokens)
		return h
	}
	if d.keep {
		h = &stat.Histogram{}
	}
	end := bytes.IndexByte(r.Data[r.Pos:], '}') // a histogram has no object and no text inside
	if r.Bad || end < 0 {
		r.Bad = true
		return nil
	}
	if err := h.ReadJSON(r.Data[r.Pos : r.Pos+end+1]); err != nil {
		r.Bad = true
		return nil
	}
	r.Pos += end + 1
	return h
}

func (d *Decoder) deviceTraffic() map[string]DeviceTraffic {
	r := &d.r
	if d.devices == nil {
		d.devices = map[string]DeviceTraffic{}
	}
	clear(d.devices)
	for !r.Bad {
		name := d.name()
		var t DeviceTraffic
		r.Literal(":[")
		for i := range t {
			if i > 0 {
				r.Literal(",")
			}
			r.Literal("{")
			t[i] = DeviceCount{r.member(`"ops":`), r.member(`"bytes":`), r.member(`"service_ns":`)}
			r.Literal("}")
		}
		r.Literal("]")
		d.devices[name] = t
		if !r.Optional(",") {
			break
		}
	}
	r.Literal("}")
	return d.devices
}

// early reads operations that began before their interval. They are rare: their memory is their own.
func (d *Decoder) early() []Early {
	r := &d.r
	start := r.Pos - 1
	depth, end := 0, start
	for ; end < len(r.Data); end++ { // no string in it has a bracket
		switch r.Data[end] {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	var list []Early
	if end == len(r.Data) || json.Unmarshal(r.Data[start:end+1], &list) != nil {
		r.Bad = true // the general reader decides
		return nil
	}
	r.Pos = end + 1
	return list
}

func (d *Decoder) readGaps() Gaps {
	r := &d.r
	start := len(d.gaps)
	for !r.Bad {
		from := r.int()
		r.Literal(",")
		d.gaps = append(d.gaps, Gap{from, r.int()})
		r.Bad = r.Bad || len(d.gaps)-start > gapsMax
		if !r.Optional(",") {
			break
		}
	}
	r.Literal("]")
	return d.gaps[start:len(d.gaps):len(d.gaps)]
}

func (d *Decoder) readGauges() GaugeValues {
	r := &d.r
	start := len(d.gauges)
	for !r.Bad {
		v := math.NaN()
		if !r.Optional("null") {
			end := bytes.IndexAny(r.Data[r.Pos:], ",]")
			if end < 0 || !json.Valid(r.Data[r.Pos:r.Pos+end]) {
				r.Bad = true
				break
			}
			var err error
			v, err = strconv.ParseFloat(string(r.Data[r.Pos:r.Pos+end]), 64)
			r.Bad = r.Bad || err != nil // not a number, or too large for one
			r.Pos += end
		}
		d.gauges = append(d.gauges, v)
		r.Bad = r.Bad || len(d.gauges)-start > GaugesMax
		if !r.Optional(",") {
			break
		}
	}
	r.Literal("]")
	return d.gauges[start:len(d.gauges):len(d.gauges)]
}

// reader reads tokens in the layout of AppendJSON.
type reader struct{ stat.Tokens }

// named is Optional for a member of an object, after the comma that separates it from the previous member.
func (r *reader) named(s string) bool {
	if r.Pos > 0 && r.Data[r.Pos-1] == '{' {
		return r.Optional(s)
	}
	start := r.Pos
	if r.Optional(",") && r.Optional(s) {
		return true
	}
	r.Pos = start
	return false
}

func (r *reader) member(s string) uint64 {
	if !r.named(s) {
		return 0
	}
	return r.Uint()
}

func (r *reader) count(s string) uint64 {
	if !r.Optional(s) {
		return 0
	}
	return r.Uint()
}

func (r *reader) nanos(s string) int64 {
	if !r.Optional(s) {
		return 0
	}
	return r.int()
}

func (r *reader) int() int64 {
	negative := r.Optional("-")
	n := r.Uint()
	if n > 1<<63-1 {
		r.Bad = true
	}
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// plainString reads a string without escapes.
func (r *reader) plainString() []byte {
	r.Literal(`"`)
	end := bytes.IndexByte(r.Data[r.Pos:], '"')
	if r.Bad || end < 0 {
		r.Bad = true
		return nil
	}
	text := r.Data[r.Pos : r.Pos+end]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			r.Bad = true
			return nil
		}
	}
	r.Pos += end + 1
	return text
}
