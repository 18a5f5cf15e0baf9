package interval

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/stat"
)

// AppendJSON appends iv as one line of JSON without its end: the same text as that of encoding/json, in a tenth of the time and
// without allocating if dst has room.
func AppendJSON(dst []byte, iv *Interval) []byte {
	return appendLine(dst, iv, (*stat.Histogram).AppendJSON)
}

// AppendFolded appends a line of only what Folded reads of a single interval: histograms have totals only.
func AppendFolded(dst []byte, iv *Interval) []byte {
	own := *iv
	own.Waiting, own.Early, own.Devices = nil, nil, nil
	for d := range own.Directions {
		own.Directions[d].Failed = nil
	}
	return appendLine(dst, &own, (*stat.Histogram).AppendFolded)
}

// AppendMerged appends a line of several intervals that were merged: sums of their histograms are exact.
func AppendMerged(dst []byte, iv *Interval) []byte {
	return appendLine(dst, iv, (*stat.Histogram).AppendExact)
}

// appendLine writes histograms of latencies by text.
func appendLine(dst []byte, iv *Interval, text func(h *stat.Histogram, dst []byte) []byte) []byte {
	dst = appendString(append(dst, `{"workload":`...), iv.Workload)
	dst = appendString(append(dst, `,"group":`...), iv.Group)
	dst = appendString(append(dst, `,"vm":`...), iv.VM)
	dst = strconv.AppendInt(append(dst, `,"instance":`...), int64(iv.Instance), 10)
	if iv.Prefill {
		dst = append(dst, `,"prefill":true`...)
	}
	dst = strconv.AppendInt(append(dst, `,"seq":`...), iv.Sequence, 10)
	dst = strconv.AppendInt(append(dst, `,"start_ns":`...), iv.StartNanos, 10)
	dst = strconv.AppendInt(append(dst, `,"length_ns":`...), iv.LengthNanos, 10)
	if iv.Final {
		dst = append(dst, `,"final":true`...)
	}
	dst = appendTraffics(append(dst, `,"dirs":[`...), &iv.Directions, text)
	dst = appendCount(dst, `,"due":`, iv.Due)
	dst = appendCount(dst, `,"not_issued":`, iv.NotIssued)
	dst = appendCount(dst, `,"backlog":`, iv.Backlog)
	dst = appendCount(dst, `,"in_flight":`, iv.InFlight)
	dst = appendNanos(dst, `,"stalled_ns":`, iv.StalledNanos)
	dst = appendNanos(dst, `,"cpu_ns":`, iv.CPUNanos)
	dst = appendNanos(dst, `,"busiest_ns":`, iv.BusiestNanos)
	dst = appendNanos(dst, `,"waited_ns":`, iv.WaitedNanos)
	dst = appendNanos(dst, `,"stolen_ns":`, iv.StolenNanos)
	dst = appendNanos(dst, `,"throttled_ns":`, iv.ThrottledNanos)
	if len(iv.Gaps) > 0 {
		dst = appendGaps(append(dst, `,"gaps_ns":`...), iv.Gaps)
	}
	if iv.Waiting != nil {
		dst = iv.Waiting.AppendJSON(append(dst, `,"waiting":`...))
	}
	if len(iv.Early) > 0 {
		dst = appendEarly(append(dst, `,"early":[`...), iv.Early, text)
	}
	if len(iv.Devices) > 0 {
		dst = appendDevices(append(dst, `,"devices":`...), iv.Devices)
	}
	if len(iv.Gauges) > 0 {
		dst = appendGauges(append(dst, `,"gauges":`...), iv.Gauges)
	}
	return append(dst, '}')
}

func appendCount(dst []byte, name string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendUint(append(dst, name...), n, 10)
}

func appendNanos(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// object writes the members of one object, with commas between those that are present.
type object struct {
	dst  []byte
	some bool
}

func (o *object) member(name string) {
	if o.some {
		o.dst = append(o.dst, ',')
	}
	o.some = true
	o.dst = append(o.dst, name...)
}

func (o *object) count(name string, n uint64) {
	if n > 0 {
		o.member(name)
		o.dst = strconv.AppendUint(o.dst, n, 10)
	}
}

func appendTraffics(dst []byte, t *Traffics, text func(*stat.Histogram, []byte) []byte) []byte {
	for d := range t.shown() {
		if d > 0 {
			dst = append(dst, ',')
		}
		dst = appendTraffic(dst, &t[d], text)
	}
	return append(dst, ']')
}

func appendEarly(dst []byte, list []Early, text func(*stat.Histogram, []byte) []byte) []byte {
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"from_ns":`...), list[i].FromNanos, 10)
		dst = strconv.AppendInt(append(dst, `,"to_ns":`...), list[i].ToNanos, 10)
		dst = append(appendTraffics(append(dst, `,"dirs":[`...), &list[i].Directions, text), '}')
	}
	return append(dst, ']')
}

func appendTraffic(dst []byte, t *Traffic, text func(*stat.Histogram, []byte) []byte) []byte {
	o := object{dst: append(dst, '{')}
	o.count(`"ops":`, t.Operations)
	o.count(`"bytes":`, t.Bytes)
	if len(t.Errors) > 0 {
		o.member(`"errors":{`)
		for i, class := range slices.Sorted(maps.Keys(t.Errors)) {
			if i > 0 {
				o.dst = append(o.dst, ',')
			}
			o.dst = append(appendString(o.dst, class), ':')
			o.dst = strconv.AppendUint(o.dst, t.Errors[class], 10)
		}
		o.dst = append(o.dst, '}')
	}
	if t.Service != nil {
		o.member(`"service":`)
		o.dst = text(t.Service, o.dst)
	}
	if t.Response != nil {
		o.member(`"response":`)
		o.dst = text(t.Response, o.dst)
	}
	if t.Failed != nil {
		o.member(`"failed":`)
		o.dst = text(t.Failed, o.dst)
	}
	return append(o.dst, '}')
}

func appendDevices(dst []byte, devices map[string]DeviceTraffic) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(devices)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':', '[')
		for d, c := range devices[name] {
			if d > 0 {
				dst = append(dst, ',')
			}
			o := object{dst: append(dst, '{')}
			o.count(`"ops":`, c.Operations)
			o.count(`"bytes":`, c.Bytes)
			o.count(`"service_ns":`, c.ServiceNanos)
			dst = append(o.dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	if !isPlain(s) {
		text, _ := json.Marshal(s) // strings always marshal
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// isPlain reports whether s needs no escaping in JSON, so that the output equals that of encoding/json.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func appendGauges(dst []byte, values GaugeValues) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("null") // neither infinity nor NaN is a number of JSON
		}
		dst = append(dst, text...)
	}
	return append(dst, ']')
}
