package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Times are the latencies of many operations, kept in a form that distinguishes both kinds: service time of all, and
// response time, which equals the service time in a closed loop and is not recorded twice.
type Times struct {
	// Unfinished counts operations that never completed: they failed, were dropped, or were still waiting when their load or the
	// result ended.
	Unfinished uint64
	// Untimed counts completed operations whose latencies are not known, or only as those of a longer time.
	Untimed uint64

	waited         stat.Histogram // of unfinished operations, how long those waited that were issued, as far as it is known
	nanos          int64          // total observation time of closed loops, over all VMs
	closed         stat.Histogram // service time of closed loops
	open, response stat.Histogram // both times of open loops
}

// Add merges the latencies of one interval.
func (t *Times) Add(iv *interval.Interval) {
	t.Unfinished += iv.NeverIssued()
	if iv.Final {
		t.addWaiting(iv.Waiting)
	}
	if scheduled := t.addTraffic(&iv.Directions); !scheduled {
		t.nanos += iv.LengthNanos
	}
}

// addTraffic merges the latencies of operations, and reports whether some had a schedule.
func (t *Times) addTraffic(directions *interval.Traffics) (scheduled bool) {
	for d := range directions {
		traffic := &directions[d]
		t.Unfinished += traffic.ErrorCount()
		t.waited.Merge(traffic.Failed)
		if traffic.Service == nil || traffic.Late() {
			t.Untimed += traffic.Operations
			continue
		}
		if traffic.Response == nil {
			t.closed.Merge(traffic.Service)
			continue
		}
		scheduled = true
		t.open.Merge(traffic.Service)
		t.response.Merge(traffic.Response)
	}
	return scheduled
}

// addWaiting adds operations in flight that never completed.
func (t *Times) addWaiting(ages *stat.Histogram) {
	if ages != nil {
		t.Unfinished += ages.Count()
		t.waited.Merge(ages)
	}
}

// Merge adds the latencies of o.
func (t *Times) Merge(o *Times) {
	t.Unfinished += o.Unfinished
	t.Untimed += o.Untimed
	t.waited.Merge(&o.waited)
	t.nanos += o.nanos
	t.closed.Merge(&o.closed)
	t.open.Merge(&o.open)
	t.response.Merge(&o.response)
}

// Service returns the service times of all operations.
func (t *Times) Service() *stat.Histogram {
	h := t.closed.Clone()
	h.Merge(&t.open)
	return h
}

// Response returns the response times of all operations, nil when all loops were closed: then they equal the service
// times.
func (t *Times) Response() *stat.Histogram {
	if t.response.Count() == 0 {
		return nil
	}
	h := t.closed.Clone()
	h.Merge(&t.response)
	return h
}

// Latency collects the latencies of selected intervals per window, and per time slice for drawing a percentile. An
// interval that was split at a step has operations of one window, and those that began in an earlier one count there. An
// interval that crosses the boundary of two windows has operations of both: it counts in the total and in neither window, so that effects of an event do not appear in the window before it, and is kept beside both. For drawing,
// it belongs to the slice that contains its midpoint.
type Latency struct {
	Windows []result.Window // in order, without overlap
	// FromNanos, ToNanos and BinNanos cut the axis for the percentile line; no line with BinNanos 0. The last stretch may be
	// shorter. If ToNanos is not after FromNanos, the line is a single stretch in the middle of the windows.
	FromNanos, ToNanos, BinNanos int64
	// LeadNanos is how much of the first stretch is before FromNanos.
	LeadNanos int64
	// SizeBound is as in Grid: operations that drain after a load have no separate point on the line, but count in their window.
	SizeBound SizeBound
	// PerVM also keeps separate windows for each VM.
	PerVM bool

	bins []Times
	vms  map[string][]Times // by VM, "" for all together; the layout is that of Of
	open map[Stream]waiting // operations in flight at the end of the last interval of a load that has them
}

// Stream is one workload on one VM.
type Stream struct{ Workload, VM string }

// waiting are the ages of operations in flight at a time.
type waiting struct {
	at   int64
	ages *stat.Histogram
}

// borderNanos is how far an interval may cross the border of a window and still count as inside: events and intervals are
// timestamped by different programs, and a load ends shortly before its step does.
const borderNanos = 25e6

// Add merges one interval, or several of one load on one VM that were merged: between Borders, and within one stretch of the line.
func (l *Latency) Add(iv *interval.Interval) {
	middle := iv.StartNanos + iv.LengthNanos/2
	w, ok := l.windowAt(middle)
	if !ok {
		return
	}
	l.noteOpen(iv)
	l.draw(iv, middle)
	if len(iv.Early) > 0 {
		for i := range iv.Early {
			e := &iv.Early[i]
			began := e.ToNanos - min((e.ToNanos-e.FromNanos)/2, 4*borderNanos)
			if before, ok := l.windowAt(iv.StartNanos + began); ok {
				l.timesOf(iv.VM)[before].addTraffic(&e.Directions)
			}
		}
		own := *iv
		own.Directions, own.Early = iv.OnTime(), nil
		iv = &own
	}
	times, n := l.timesOf(iv.VM), len(l.Windows)
	if iv.StartNanos < l.Windows[w].FromNanos-borderNanos && w > 0 ||
		iv.EndNanos() > l.Windows[w].ToNanos+borderNanos && w < n-1 {
		w = n
		for i := range l.Windows {
			if iv.StartNanos < l.Windows[i].ToNanos-borderNanos && iv.EndNanos() > l.Windows[i].FromNanos+borderNanos {
				times[n+1+i].Add(iv)
			}
		}
	}
	times[w].Add(iv)
}

// Borders returns the times at which Add distinguishes intervals, beside the stretches of the line.
func (l *Latency) Borders() []int64 {
	list := []int64{l.FromNanos, l.ToNanos}
	for _, w := range l.Windows {
		list = append(list, w.FromNanos, w.ToNanos)
	}
	return list
}

// draw adds one interval to the line of percentiles.
func (l *Latency) draw(iv *interval.Interval, middle int64) {
	drawn := l.ToNanos <= l.FromNanos || l.FromNanos <= middle && middle < l.ToNanos
	if l.BinNanos > 0 && drawn && !Drain(iv, l.SizeBound) {
		bin := 0
		if l.ToNanos > l.FromNanos {
			bin = int((middle - l.FromNanos + l.LeadNanos) / l.BinNanos)
		}
		for len(l.bins) <= bin {
			l.bins = append(l.bins, Times{})
		}
		l.bins[bin].Add(iv)
	}
}

// windowAt returns the window that contains a time.
func (l *Latency) windowAt(moment int64) (window int, ok bool) {
	return slices.BinarySearchFunc(l.Windows, moment, func(w result.Window, at int64) int {
		switch {
		case w.ToNanos <= at:
			return -1
		case w.FromNanos > at:
			return 1
		}
		return 0
	})
}

// noteOpen keeps what is in flight at the end of an interval, until the next one tells more.
func (l *Latency) noteOpen(iv *interval.Interval) {
	key := Stream{iv.Workload, iv.VM}
	if iv.Waiting == nil || iv.Final {
		delete(l.open, key)
		return
	}
	if l.open == nil {
		l.open = map[Stream]waiting{}
	}
	l.open[key] = waiting{iv.EndNanos(), iv.Waiting.Clone()}
}

// Close adds the operations that were in flight when the result ended. They took at least as long as they had waited by then, and
// count in the windows in which they began.
func (l *Latency) Close() {
	for _, key := range slices.SortedFunc(maps.Keys(l.open), func(a, b Stream) int {
		return cmp.Or(strings.Compare(a.VM, b.VM), strings.Compare(a.Workload, b.Workload))
	}) {
		l.addOpen(key)
	}
}

// addOpen adds what a stream has in flight, and returns how many operations that are.
func (l *Latency) addOpen(key Stream) uint64 {
	o := l.open[key]
	delete(l.open, key)
	if o.ages == nil {
		return 0
	}
	times := l.timesOf(key.VM)
	o.ages.Buckets(func(bucket int, n uint64) bool {
		low, _ := stat.BucketBounds(bucket)
		age := min(max(low, o.ages.Min()), o.ages.Max())
		if bucket == stat.BucketOf(o.ages.Max()) {
			age = o.ages.Max()
		}
		w, _ := l.windowAt(max(o.at-int64(age), l.Windows[0].FromNanos))
		t := &times[min(w, len(l.Windows)-1)]
		t.Unfinished += n
		t.waited.RecordN(age, n)
		return true
	})
	return o.ages.Count()
}

// timesOf returns the slice of a VM, or of all VMs, and creates it on first use.
func (l *Latency) timesOf(vm string) []Times {
	if !l.PerVM {
		vm = ""
	}
	if l.vms[vm] == nil {
		if l.vms == nil {
			l.vms = map[string][]Times{}
		}
		l.vms[strings.Clone(vm)] = make([]Times, 2*len(l.Windows)+1)
	}
	return l.vms[vm]
}

// Of returns the times per window, of one VM when PerVM is set, or nil. The slice has an element for each window, one for
// intervals that cross borders, and then for each window the crossing intervals that overlap it.
func (l *Latency) Of(vm string) []Times {
	if !l.PerVM {
		vm = ""
	}
	return l.vms[vm]
}

// Lost adds operations that were in flight when a load was lost: in the windows in which they began, or if that is unknown in the
// window of the loss.
func (l *Latency) Lost(of Stream, at int64, operations uint64) {
	operations -= min(l.addOpen(of), operations)
	for i, w := range l.Windows {
		if w.FromNanos <= at && (at < w.ToNanos || i == len(l.Windows)-1 && at == w.ToNanos) {
			l.timesOf(of.VM)[i].Unfinished += operations
		}
	}
}

// VMs lists the VMs that delivered anything, sorted.
func (l *Latency) VMs() []string {
	var names []string
	for name := range l.vms {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// P99Line returns the 99th percentile of each bin, of service and, if there is any, of response time. Operations that never
// completed count as longer than all others: where the percentile falls among them, the point is the longest time known.
func (l *Latency) P99Line() (service, response result.Points) {
	open := slices.ContainsFunc(l.bins, func(t Times) bool { return t.response.Count() > 0 })
	for i := range l.bins {
		at := seconds(l.middle(i))
		service = append(service, result.Point{Seconds: at, Value: float64(l.bins[i].Statistics("service").P99)})
		if open {
			response = append(response, result.Point{Seconds: at, Value: float64(l.bins[i].Statistics("response").P99)})
		}
	}
	return service, response
}

// middle of a bin on the run's axis.
func (l *Latency) middle(bin int) int64 {
	if l.ToNanos <= l.FromNanos {
		return (l.Windows[0].FromNanos + l.Windows[len(l.Windows)-1].ToNanos) / 2
	}
	from := l.FromNanos - l.LeadNanos + int64(bin)*l.BinNanos
	return (max(from, l.FromNanos) + min(from+l.BinNanos, l.ToNanos)) / 2
}
