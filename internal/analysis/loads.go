package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Loads rolls up intervals per start of a workload.
type Loads struct {
	loads  map[loadKey]*roll
	latest *roll // most intervals are of the same load as the one before
}

type loadKey struct {
	workload, group string
	instance        int
	prefill         bool
}

type roll struct {
	summary result.LoadSummary
	vms     map[string]bool
	busy    int64 // end of the last interval in which an operation completed
	gauges  []gaugeRoll
}

// gaugeRoll is one gauge over all intervals; sum is of values times nanoseconds.
type gaugeRoll struct {
	sum, nanos, low, high float64
	last                  LastValues
}

// LastValues are what each VM of a load reported last of one gauge.
type LastValues struct {
	instance int
	byVM     map[string]float64
	sum      float64
}

// Add notes a value of the VM of an interval, and returns the mean of all last values. Each start of the workload has its own.
func (l *LastValues) Add(iv *interval.Interval, v float64) float64 {
	if l.byVM == nil || iv.Instance > l.instance {
		*l = LastValues{instance: iv.Instance, byVM: map[string]float64{}}
	}
	before, known := l.byVM[iv.VM]
	if iv.Instance == l.instance { // not the rest of an earlier start
		vm := iv.VM
		if !known {
			vm = strings.Clone(vm)
		}
		l.byVM[vm], l.sum = v, l.sum+v-before
	}
	return l.Mean()
}

// Mean is NaN without a value.
func (l *LastValues) Mean() float64 { return l.sum / float64(len(l.byVM)) }

func (r *roll) addGauges(iv *interval.Interval) {
	for i, v := range iv.Gauges {
		for len(r.gauges) <= i {
			r.gauges = append(r.gauges, gaugeRoll{low: math.Inf(1), high: math.Inf(-1)})
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue // a gap
		}
		g := &r.gauges[i]
		length := float64(max(iv.LengthNanos, 1))
		g.sum, g.nanos = g.sum+v*length, g.nanos+length
		g.low, g.high = min(g.low, v), max(g.high, v)
		g.last.Add(iv, v)
	}
}

// gaugeStats are the gauges that the engine names.
func (r *roll) gaugeStats(e interval.Engine) []result.GaugeStats {
	var list []result.GaugeStats
	for i, g := range r.gauges[:min(len(r.gauges), len(e.Gauges))] {
		if g.nanos == 0 {
			g.low, g.high = math.NaN(), math.NaN() // no value in any interval
		}
		mean := g.sum / g.nanos
		if e.Gauges[i].SoFar {
			mean = g.last.Mean()
		}
		list = append(list, result.GaugeStats{Gauge: e.Gauges[i], Mean: result.Number(mean),
			Min: result.Number(g.low), Max: result.Number(g.high)})
	}
	return list
}

// Add merges one interval, or several of one start on one VM that were merged and in which operations completed throughout or never.
func (l *Loads) Add(iv *interval.Interval) {
	r := l.roll(iv)
	if !r.vms[iv.VM] {
		r.vms[strings.Clone(iv.VM)] = true
	}
	s := &r.summary
	s.FromNanos, s.ToNanos = min(s.FromNanos, iv.StartNanos), max(s.ToNanos, iv.EndNanos())
	for d := range iv.Directions {
		if iv.Directions[d].Operations > 0 {
			r.busy = max(r.busy, iv.EndNanos())
		}
		accumulate(&s.Directions[d], &iv.Directions[d])
	}
	s.Due += iv.Due
	s.NotIssued += iv.NotIssued
	if iv.Final {
		s.WaitingAtEnd += iv.Backlog
	}
	s.CPUNanos += iv.CPUNanos
	s.StalledNanos += iv.StalledNanos
}

// AddGauges takes the gauges of one interval, which Add does not.
func (l *Loads) AddGauges(iv *interval.Interval) {
	if len(iv.Gauges) > 0 {
		l.roll(iv).addGauges(iv)
	}
}

func (l *Loads) roll(iv *interval.Interval) *roll {
	if r := l.latest; r != nil && r.summary.Instance == iv.Instance && r.summary.Prefill == iv.Prefill && r.summary.Workload == iv.Workload &&
		r.summary.Group == iv.Group {
		return r
	}
	key := loadKey{iv.Workload, iv.Group, iv.Instance, iv.Prefill}
	r := l.loads[key]
	if r == nil {
		if l.loads == nil {
			l.loads = map[loadKey]*roll{}
		}
		key.workload, key.group = strings.Clone(key.workload), strings.Clone(key.group)
		r = &roll{vms: map[string]bool{}}
		r.summary = result.LoadSummary{Workload: key.workload, Group: key.group, Instance: key.instance,
			Prefill: key.prefill, FromNanos: iv.StartNanos, ToNanos: iv.EndNanos()}
		l.loads[key] = r
	}
	l.latest = r
	return r
}

// accumulate merges o into t, whose histograms belong to t alone.
func accumulate(t, o *interval.Traffic) {
	if t.Response == nil && o.Response != nil {
		t.Response = t.Service.CloneOrNew() // the earlier operations were of a closed loop
	}
	if t.Response != nil {
		t.Response.Merge(o.ResponseOrService())
	}
	if o.Service != nil {
		if t.Service == nil {
			t.Service = o.Service.Clone()
		} else {
			t.Service.Merge(o.Service)
		}
	}
	if o.Failed != nil {
		if t.Failed == nil {
			t.Failed = &stat.Histogram{}
		}
		t.Failed.Merge(o.Failed)
	}
	t.Operations += o.Operations
	t.Bytes += o.Bytes
	for class, n := range o.Errors {
		if t.Errors == nil {
			t.Errors = map[string]uint64{}
		}
		t.Errors[strings.Clone(class)] += n
	}
}

// Summaries returns the roll-ups in order of their start. engines are the planned ones per workload; bound lists the starts that
// only their amount of data bounds. Their time to complete is a result, unless they were stopped, failed, or lost a VM to a power
// cut of the run. It counts from the first VM's first interval to the end of the last interval in which an operation completed,
// on the slowest VM.
func (l *Loads) Summaries(t *Timeline, engines map[string]interval.Engine, bound SizeBound) []result.LoadSummary {
	list := make([]result.LoadSummary, 0, len(l.loads))
	for _, r := range l.loads {
		s := r.summary
		s.VMs, s.Engines = len(r.vms), []interval.Engine{}
		if engine, ok := engines[s.Workload]; ok {
			s.Engines, s.Gauges = []interval.Engine{engine}, r.gaugeStats(engine)
		}
		for d := range s.Directions {
			accumulate(&s.Total, &s.Directions[d])
		}
		ended, complete := s.Prefill, s.Prefill || bound[Start{s.Workload, s.Instance}]
		for _, start := range t.StartsOf(s.Workload) {
			if start.Instance == s.Instance && !s.Prefill {
				s.Error, ended, complete = start.Error, start.Ended, complete && !start.Stopped
			}
		}
		if complete && r.busy > 0 && ended && !t.incomplete(Start{s.Workload, s.Instance}, s.Prefill) {
			s.CompletionNanos = r.busy - s.FromNanos
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b result.LoadSummary) int {
		return cmp.Or(cmp.Compare(a.FromNanos, b.FromNanos), strings.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Instance, b.Instance), strings.Compare(a.Group, b.Group))
	})
	return list
}
