// Package digest holds what rules of the audit need to know about the intervals of a run: totals, gaps, stalls and effort of each
// stream, and the course of each load. It judges nothing.
//
//	intervals, one by one ──Add──▶ Digest ──Streams, Of──▶ Stream (one start of a workload on one VM)
//	                                      ──Course──▶ operations and response times over time
package digest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/steady"
)

// gapsKept bounds the gaps that a Stream lists; all gaps are counted.
const gapsKept = 16

// Digest is what rules need to know about intervals. It receives every interval of a run once, in the order of delivery per
// workload and VM, and stays small however long the run is.
type Digest struct {
	streams map[streamKey]*Stream
	keys    []streamKey // in order of first sight
	loads   map[loadKey]*steady.Course
	engines map[string]interval.Engine
}

type streamKey struct {
	workload, vm string
	instance     int
	prefill      bool
}

type loadKey struct {
	workload string
	instance int
}

// Stream is one start of one workload on one VM.
type Stream struct {
	Workload, Group, VM string
	Instance            int
	Prefill             bool

	Intervals  int
	Missing    int64 // sequence numbers that never arrived
	Gaps       []Gap // the first ones
	FirstNanos int64
	LastNanos  int64
	Final      bool

	Operations, Bytes, Errors, Due, NotIssued uint64
	BacklogEnd, BacklogMax, InFlightEnd       uint64
	CPUNanos, StalledNanos                    int64
	StallMaxNanos, StallMaxAt                 int64
	// Lengths of the intervals in which the generator was saturated and in which it was starved of CPU, and where each began.
	SaturatedNanos, SaturatedAt, StarvedNanos, StarvedAt int64
	LackedNanos                                          int64           // sum of Effort.LackedNanos
	WorstEffort                                          interval.Effort // the largest of each field over the intervals
	EffortKnown                                          bool

	ServiceNanos float64 // sum of the service times of all operations
	DepthMax     float64 // the most operations in flight, on average over an interval, by Little's law
	LengthMax    int64   // of an interval

	stallNanos, stallAt int64 // the stall that may continue in the next interval
	stallFull           bool  // it filled the last one

	Checkpoints *Checkpoints // nil of loads without a database that names its checkpoints

	Fingerprint uint64 // of counts and latencies, interval by interval
	Busy        int    // intervals with operations
	sequence    int64
}

// Gap is a stretch without an interval.
type Gap struct{ FromNanos, ToNanos int64 }

// New returns an empty Digest. The engines, by workload, name the gauges of intervals.
func New(engines map[string]interval.Engine) *Digest {
	return &Digest{streams: map[streamKey]*Stream{}, loads: map[loadKey]*steady.Course{}, engines: engines}
}

// Add takes one interval, which it does not keep.
func (d *Digest) Add(iv *interval.Interval) {
	d.AddCounts(iv)
	d.AddTimes(iv)
}

// AddCounts takes one interval, of whose histograms it needs only the sums.
func (d *Digest) AddCounts(iv *interval.Interval) {
	key := streamKey{iv.Workload, iv.VM, iv.Instance, iv.Prefill}
	s := d.streams[key]
	if s == nil {
		s = &Stream{Workload: iv.Workload, Group: iv.Group, VM: iv.VM, Instance: iv.Instance, Prefill: iv.Prefill,
			FirstNanos: iv.StartNanos, LastNanos: iv.StartNanos, sequence: -1}
		if !iv.Prefill {
			s.Checkpoints = checkpointsOf(d.engines[iv.Workload])
		}
		d.streams[key] = s
		d.keys = append(d.keys, key)
	}
	s.follow(iv)
	s.count(iv)
	s.trace(iv)
	s.Checkpoints.add(iv)
	if iv.Prefill {
		return
	}
	d.course(iv).AddCounts(iv)
}

// AddTimes takes the response times of one interval, or of several that were merged and whose middles are in the same second.
func (d *Digest) AddTimes(iv *interval.Interval) {
	if !iv.Prefill {
		d.course(iv).AddTimes(iv)
	}
}

func (d *Digest) course(iv *interval.Interval) *steady.Course {
	key := loadKey{iv.Workload, iv.Instance}
	c := d.loads[key]
	if c == nil {
		key.workload = strings.Clone(key.workload)
		c = &steady.Course{}
		d.loads[key] = c
	}
	return c
}

// follow checks that iv directly follows the previous interval.
func (s *Stream) follow(iv *interval.Interval) {
	if missing := iv.Sequence - s.sequence - 1; missing > 0 {
		s.Missing += missing
		s.gap(s.LastNanos, iv.StartNanos)
	} else if s.Intervals > 0 && iv.StartNanos-s.LastNanos > max(iv.LengthNanos, 1)/2 {
		s.Missing++
		s.gap(s.LastNanos, iv.StartNanos)
	}
	s.sequence = max(s.sequence, iv.Sequence)
	s.LastNanos = max(s.LastNanos, iv.EndNanos())
	s.Final = s.Final || iv.Final
	s.Intervals++
}

func (s *Stream) gap(from, to int64) {
	if len(s.Gaps) < gapsKept {
		s.Gaps = append(s.Gaps, Gap{from, to})
	}
}

func (s *Stream) count(iv *interval.Interval) {
	for i := range iv.Directions {
		t := &iv.Directions[i]
		s.Operations += t.Operations
		s.Bytes += t.Bytes
		s.Errors += t.ErrorCount()
	}
	s.Due += iv.Due
	s.NotIssued += iv.NotIssued
	s.BacklogEnd, s.InFlightEnd = iv.Backlog, iv.InFlight
	s.BacklogMax = max(s.BacklogMax, iv.Backlog)
	s.CPUNanos += iv.CPUNanos
	s.StalledNanos += iv.StalledNanos
	s.stall(iv)
	s.strain(iv)
}

// stallFullShare: a stall of this share of an interval is taken to join those of the adjacent intervals.
const stallFullShare = 0.9

// stall tracks the longest stall. A stall that fills an interval continues into the adjacent ones.
func (s *Stream) stall(iv *interval.Interval) {
	full := float64(iv.StalledNanos) >= stallFullShare*float64(iv.LengthNanos)
	if goesOn := s.stallFull || full && s.stallNanos > 0; iv.StalledNanos == 0 || !goesOn {
		s.stallNanos, s.stallAt = 0, iv.StartNanos
	}
	s.stallNanos += iv.StalledNanos
	s.stallFull = full && iv.StalledNanos > 0
	if s.stallNanos > s.StallMaxNanos {
		s.StallMaxNanos, s.StallMaxAt = s.stallNanos, s.stallAt
	}
}

// strain notes whether the generator kept up.
func (s *Stream) strain(iv *interval.Interval) {
	s.EffortKnown = s.EffortKnown || iv.BusiestNanos > 0
	s.WorstEffort.Join(iv.Effort)
	s.LackedNanos += min(iv.LackedNanos(), iv.LengthNanos)
	if iv.Saturated() {
		if s.SaturatedNanos == 0 {
			s.SaturatedAt = iv.StartNanos
		}
		s.SaturatedNanos += iv.LengthNanos
	}
	if iv.Starved() {
		if s.StarvedNanos == 0 {
			s.StarvedAt = iv.StartNanos
		}
		s.StarvedNanos += iv.LengthNanos
	}
}

// depthLengthMin: in a shorter interval, operations that began before it dominate.
const depthLengthMin = int64(500e6)

// trace folds the interval into the fingerprint. Sums of latencies in nanoseconds never repeat by chance; the counts of a load with a
// rate do.
func (s *Stream) trace(iv *interval.Interval) {
	var operations uint64
	var latency float64
	for i := range iv.Directions {
		operations += iv.Directions[i].Operations
		latency += latencySum(iv.Directions[i].Service)
	}
	s.ServiceNanos += latency
	s.LengthMax = max(s.LengthMax, iv.LengthNanos)
	if iv.LengthNanos >= depthLengthMin {
		s.DepthMax = max(s.DepthMax, latency/float64(iv.LengthNanos))
	}
	if operations > 0 && latency > 0 {
		s.Busy++
		s.Fingerprint = mix(mix(s.Fingerprint+operations) + math.Float64bits(latency))
	}
}

// mix is the finalizer of SplitMix64. The same samples have the same fingerprint in every program.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fingerprintIntervals is how many busy intervals a fingerprint needs.
const fingerprintIntervals = 5

// Fingerprint identifies the raw samples of one start of a workload on all its VMs: counts and latencies of every busy interval. It
// is empty if there are too few.
func (d *Digest) Fingerprint(workload string, instance int, prefill bool) string {
	var sum uint64
	busy := 0
	for _, s := range d.Of(workload, instance, prefill) {
		sum += mix(s.Fingerprint)
		busy += s.Busy
	}
	if busy < fingerprintIntervals {
		return ""
	}
	return fmt.Sprintf("%016x", sum)
}

func latencySum(h *stat.Histogram) float64 {
	if h == nil {
		return 0
	}
	return h.Sum()
}

// Streams lists every stream in the order of first sight.
func (d *Digest) Streams() []*Stream {
	if d == nil {
		return nil
	}
	list := make([]*Stream, len(d.keys))
	for i, k := range d.keys {
		list[i] = d.streams[k]
	}
	return list
}

// Course returns the course of one start of a workload, nil if it recorded nothing.
func (d *Digest) Course(workload string, instance int) *steady.Course {
	if d == nil {
		return nil
	}
	return d.loads[loadKey{workload, instance}]
}

// Of lists the streams of one start of a workload.
func (d *Digest) Of(workload string, instance int, prefill bool) []*Stream {
	return slices.DeleteFunc(d.Streams(), func(s *Stream) bool {
		return s.Workload != workload || s.Instance != instance || s.Prefill != prefill
	})
}

// Lasted is how long the stream was observed.
func (s *Stream) Lasted() int64 { return s.LastNanos - s.FirstNanos }
