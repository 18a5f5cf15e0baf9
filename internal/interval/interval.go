// Package interval defines the record of a run: Intervals (the traffic of one workload on one VM in one second) and
// Events (timestamped occurrences), both on the run's time axis. It merges and encodes them; it does not measure or store.
//
//	generator ── Interval every second ──▶ runner ──▶ result.Writer and metric.Store
//
// The time axis of a run counts nanoseconds from the start of the run on a monotonic clock. Wall time is recorded only once, in
// the manifest, for zero on the axis.
package interval

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/stat"
)

// Direction is what an I/O operation does to the medium. It is the number of that operation in Interval.Directions, unless the
// Engine of a load names other operations.
type Direction uint8

const (
	Read Direction = iota
	Write
	Trim
	DirectionCount = 3
)

func (d Direction) String() string { return [...]string{"read", "write", "trim"}[d] }

// OperationsMax is the maximum number of kinds of operations of a load, GaugesMax the maximum number of gauges.
const (
	OperationsMax = 8
	GaugesMax     = 32
)

// GaugeValues are values of gauges. A value that is not finite is a gap: null in JSON, NaN when read.
type GaugeValues []float64

// UnknownGauges are n gaps.
func UnknownGauges(n int) GaugeValues { return slices.Repeat(GaugeValues{math.NaN()}, n) }

// MarshalJSON writes a list.
func (g GaugeValues) MarshalJSON() ([]byte, error) { return appendGauges(nil, g), nil }

// UnmarshalJSON reads a list of at most GaugesMax values.
func (g *GaugeValues) UnmarshalJSON(text []byte) error {
	var list []*float64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) > GaugesMax {
		return fmt.Errorf("%d gauges, at most %d are read", len(list), GaugesMax)
	}
	*g = make(GaugeValues, len(list))
	for i, v := range list {
		if (*g)[i] = math.NaN(); v != nil {
			(*g)[i] = *v
		}
	}
	return nil
}

// Traffics is the traffic of each kind of operation, by its number. In JSON it ends with the last one that has operations, and
// always has those of I/O.
type Traffics [OperationsMax]Traffic

// shown is how many of them JSON has.
func (t *Traffics) shown() int {
	for i := OperationsMax - 1; i >= DirectionCount; i-- {
		if one := &t[i]; one.Operations > 0 || one.Bytes > 0 || len(one.Errors) > 0 || one.Service != nil || one.Response != nil {
			return i + 1
		}
	}
	return DirectionCount
}

// MarshalJSON writes a list.
func (t Traffics) MarshalJSON() ([]byte, error) { return json.Marshal(t[:t.shown()]) }

// UnmarshalJSON reads a list.
func (t *Traffics) UnmarshalJSON(text []byte) error {
	var list []Traffic
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) > OperationsMax {
		return fmt.Errorf("%d kinds of operations, want at most %d", len(list), OperationsMax)
	}
	*t = Traffics{}
	copy(t[:], list)
	return nil
}

// Interval is what one workload did on one VM from StartNanos for LengthNanos. Intervals of one workload and VM follow each other
// without overlap; the first and the last have their true length. Counts belong to the interval in which the operation completed.
type Interval struct {
	Workload string `json:"workload"`
	Group    string `json:"group"`
	VM       string `json:"vm"`
	// Instance counts the starts of one workload in a run: a workload started twice has instances 1 and 2.
	Instance    int   `json:"instance"`
	Prefill     bool  `json:"prefill,omitempty"`
	Sequence    int64 `json:"seq"` // 0, 1, 2 … per workload instance and VM; allows checking exactly-once delivery
	StartNanos  int64 `json:"start_ns"`
	LengthNanos int64 `json:"length_ns"`
	Final       bool  `json:"final,omitempty"` // no further interval of this instance and VM follows

	Directions Traffics `json:"dirs"` // the Engine of the load names them

	// Due counts operations whose intended start lies in this interval; NotIssued those due and dropped, never issued.
	// Backlog is how many were due and not yet issued at the end; if Final is set, they never were. All are 0 for a closed loop.
	Due       uint64 `json:"due,omitempty"`
	NotIssued uint64 `json:"not_issued,omitempty"`
	Backlog   uint64 `json:"backlog,omitempty"`
	// InFlight is the number of operations submitted and not completed at the end of the interval.
	InFlight uint64 `json:"in_flight,omitempty"`
	// StalledNanos is how long the generator itself did not run in this interval (stopped or starved of CPU).
	StalledNanos int64 `json:"stalled_ns,omitempty"`
	// CPUNanos is the CPU time, user and system, that the generator used.
	CPUNanos int64 `json:"cpu_ns,omitempty"`
	// Effort reports how hard it was for the generator to keep up; zero if unknown.
	Effort
	Progress

	// Devices is the same traffic by device name ("/dev/sdb"), as the counters of a device's driver would show it. Its operations
	// and bytes add up to Directions. Nil if the generator cannot distinguish devices, or does no I/O on them.
	Devices map[string]DeviceTraffic `json:"devices,omitempty"`

	// Gauges are values at the end of the interval; the Engine of the load names them.
	Gauges GaugeValues `json:"gauges,omitempty"`
}

// DeviceTraffic is what one device completed in an Interval.
type DeviceTraffic [DirectionCount]DeviceCount

// DeviceCount is one direction of a DeviceTraffic. ServiceNanos is the sum of the service times of its operations.
type DeviceCount struct {
	Operations   uint64 `json:"ops,omitempty"`
	Bytes        uint64 `json:"bytes,omitempty"`
	ServiceNanos uint64 `json:"service_ns,omitempty"`
}

// Traffic is one direction of an Interval.
type Traffic struct {
	Operations uint64            `json:"ops,omitempty"` // completed without an error
	Bytes      uint64            `json:"bytes,omitempty"`
	Errors     map[string]uint64 `json:"errors,omitempty"` // failed operations by class: "EIO", "short-read"
	// Service counts nanoseconds from submission to completion; Response from the intended start to completion. In a
	// closed loop both are the same, and Response is nil.
	Service  *stat.Histogram `json:"service,omitempty"`
	Response *stat.Histogram `json:"response,omitempty"`
	// Failed counts nanoseconds from the intended start of failed operations to their failure. Of those of Errors that it does
	// not contain, the time is unknown.
	Failed *stat.Histogram `json:"failed,omitempty"`
}

// NeverIssued returns the number of operations that were due and are known to never have been issued.
func (iv *Interval) NeverIssued() uint64 {
	if iv.Final {
		return iv.NotIssued + iv.Backlog
	}
	return iv.NotIssued
}

// Late reports whether the latencies are of earlier intervals too: some programs print them only when a load ends.
func (t *Traffic) Late() bool {
	h := t.ResponseOrService()
	return h != nil && h.Count() > t.Operations
}

// ErrorCount returns the number of failed operations.
func (t *Traffic) ErrorCount() uint64 {
	if len(t.Errors) == 0 { // as it should be: starting to range over a map takes a while
		return 0
	}
	var n uint64
	for _, c := range t.Errors {
		n += c
	}
	return n
}

// ResponseOrService returns the response time histogram if there is one, otherwise the service time. May be nil.
func (t *Traffic) ResponseOrService() *stat.Histogram {
	if t.Response != nil {
		return t.Response
	}
	return t.Service
}

// Add merges o into t; o is not changed.
func (t *Traffic) Add(o *Traffic) {
	// A side without Response is a closed loop: its service time is its response time.
	if t.Response != nil || o.Response != nil {
		merged := t.ResponseOrService().CloneOrNew()
		merged.Merge(o.ResponseOrService())
		t.Response = merged
	}
	if o.Service != nil {
		t.Service = t.Service.CloneOrNew()
		t.Service.Merge(o.Service)
	}
	if o.Failed != nil {
		t.Failed = t.Failed.CloneOrNew()
		t.Failed.Merge(o.Failed)
	}
	t.Operations += o.Operations
	t.Bytes += o.Bytes
	if len(o.Errors) > 0 {
		t.Errors = maps.Clone(t.Errors)
		if t.Errors == nil {
			t.Errors = map[string]uint64{}
		}
		for class, n := range o.Errors {
			t.Errors[class] += n
		}
	}
}

// Totals returns the traffic of all directions merged.
func (iv *Interval) Totals() Traffic {
	var sum Traffic
	for d := range iv.Directions {
		sum.Add(&iv.Directions[d])
	}
	return sum
}

// EndNanos returns the end on the run's time axis.
func (iv *Interval) EndNanos() int64 { return iv.StartNanos + iv.LengthNanos }
