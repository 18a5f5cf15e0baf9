package metric

import (
	"maps"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// Names of the metrics made from intervals.
const (
	Operations   = "bragg_operations_total"
	Bytes        = "bragg_bytes_total"
	Errors       = "bragg_errors_total"
	ServiceTime  = "bragg_service_time_seconds"
	ResponseTime = "bragg_response_time_seconds"
	Due          = "bragg_operations_due_total"
	NotIssued    = "bragg_operations_not_issued_total"
	Backlog      = "bragg_backlog_operations"
	InFlight     = "bragg_in_flight_operations"
	CPU          = "bragg_generator_cpu_seconds_total"
	Stalled      = "bragg_generator_stalled_seconds_total"
	Gauge        = "bragg_load_gauge"
)

// loadKey identifies one generator on one VM over all its starts: its counters never decrease.
type loadKey struct {
	workload, vm string
	prefill      bool
}

type loadSeries struct {
	engine   interval.Engine
	labels   map[string]string
	lastT    int64 // milliseconds of the newest values
	counters map[counterKey]*counter
	times    map[counterKey]*timeSeries
}

// counterKey is one series of a load; gauge is the number of a gauge, from 1.
type counterKey struct {
	name, operation, class string
	gauge                  int
}

// counter is one series; gauges use it too.
type counter struct {
	labels labels.Labels
	ref    storage.SeriesRef
	value  float64
}

type timeSeries struct {
	labels labels.Labels
	ref    storage.SeriesRef
	cells  exponential
	last   *stat.Histogram // of the current interval, until it was forwarded
	parts  []labels.Labels // of the summary that a remote store gets instead; nil until then
}

// AppendInterval adds the values of one interval at its end. Intervals of one workload and VM must come in their order.
func (s *Store) AppendInterval(iv *interval.Interval) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.load(iv)
	start := max(s.millis(iv.StartNanos), l.lastT)
	end := max(s.millis(iv.EndNanos()), start+1)
	m := moment{store: s, load: l, start: start, end: end}
	if start > l.lastT && l.lastT > 0 {
		m.holdAt(start)
	}
	m.spread(iv)
	for d := range iv.Directions {
		m.operation(l.engine.Operation(d), &iv.Directions[d])
	}
	m.add(counterKey{name: Due}, float64(iv.Due))
	m.add(counterKey{name: NotIssued}, float64(iv.NotIssued))
	m.add(counterKey{name: CPU}, float64(iv.CPUNanos)/1e9)
	m.add(counterKey{name: Stalled}, float64(iv.StalledNanos)/1e9)
	m.set(counterKey{name: Backlog}, float64(iv.Backlog))
	m.set(counterKey{name: InFlight}, float64(iv.InFlight))
	known := m.gauges(iv)
	m.finish()
	if l.lastT = end; iv.Final {
		m.endGauges(known)
		l.lastT++
	}
	return s.hand()
}

func (s *Store) load(iv *interval.Interval) *loadSeries {
	key := loadKey{iv.Workload, iv.VM, iv.Prefill}
	l := s.loads[key]
	if l == nil {
		l = &loadSeries{engine: s.engines[iv.Workload], counters: map[counterKey]*counter{}, times: map[counterKey]*timeSeries{}}
		l.labels = s.vmLabels(iv.Group, iv.VM)
		l.labels["workload"] = iv.Workload
		if iv.Prefill {
			l.labels["prefill"] = "true"
		}
		s.loads[key] = l
	}
	return l
}

// vmLabels are the labels of all series of one VM. A VM keeps its first node label, because a changed label would split a series
// in two.
func (s *Store) vmLabels(group, vm string) map[string]string {
	out := maps.Clone(s.own)
	maps.Copy(out, map[string]string{"vm_group": group, "vm": vm, "instance": vm, "node": s.nodes[vm]})
	return out
}

// moment appends the values of one interval.
type moment struct {
	store      *Store
	load       *loadSeries
	start, end int64
}

func (m *moment) operation(name string, t *interval.Traffic) {
	if _, seen := m.load.counters[counterKey{name: Operations, operation: name}]; !seen && t.Operations == 0 && len(t.Errors) == 0 {
		return // an operation that this load never had makes no series
	}
	m.add(counterKey{name: Operations, operation: name}, float64(t.Operations))
	if m.load.engine.DoesIO() || t.Bytes > 0 {
		m.add(counterKey{name: Bytes, operation: name}, float64(t.Bytes))
	}
	for class, n := range t.Errors {
		m.add(counterKey{name: Errors, operation: name, class: class}, float64(n))
	}
	m.times(counterKey{name: ServiceTime, operation: name}, t.Service)
	m.times(counterKey{name: ResponseTime, operation: name}, t.Response)
}

// add increases a counter. A counter begins at 0 at the start of its first interval, so that rate includes that interval. It has
// no series until it is first increased.
func (m *moment) add(key counterKey, by float64) {
	c := m.load.counters[key]
	if c == nil {
		if by == 0 && key.name != Operations && key.name != Bytes {
			return
		}
		c = &counter{labels: m.labels(key)}
		m.load.counters[key] = c
		if m.start > m.load.lastT {
			m.float(c, m.start)
		}
	}
	c.value += by
}

func (m *moment) set(key counterKey, value float64) {
	c := m.load.counters[key]
	if c == nil {
		c = &counter{labels: m.labels(key)}
		m.load.counters[key] = c
	}
	c.value = value
}

// gauges sets the values of gauges, and returns those that were known before.
func (m *moment) gauges(iv *interval.Interval) (known []counterKey) {
	for i, v := range iv.Gauges[:min(len(iv.Gauges), len(m.load.engine.Gauges))] {
		key := counterKey{name: Gauge, gauge: i + 1}
		if c := m.load.counters[key]; c != nil && !math.IsNaN(c.value) {
			known = append(known, key)
		}
		m.set(key, v)
	}
	return known
}

// endGauges marks gauges of a load that has ended as gone, as Prometheus does with those of a target that it lost: their last values are not
// those of the time after it. A value that only the end of the load has stays valid for a while.
func (m *moment) endGauges(known []counterKey) {
	for _, key := range append(known, counterKey{name: Backlog}, counterKey{name: InFlight}) {
		c := m.load.counters[key]
		m.store.put(value{ref: &c.ref, labels: c.labels, millis: m.end + 1, number: math.Float64frombits(stale.StaleNaN)})
	}
	for key, c := range m.load.counters {
		if key.gauge > 0 {
			c.value = math.NaN() // for the next start
		}
	}
}

func (m *moment) times(key counterKey, h *stat.Histogram) {
	t := m.load.times[key]
	if t == nil {
		if h == nil || h.Count() == 0 {
			return
		}
		t = &timeSeries{labels: m.labels(key)}
		m.load.times[key] = t
		if m.start > m.load.lastT {
			m.histogram(t, m.start)
		}
	}
	t.cells.add(h)
	t.last = h
}

// holdAt repeats all counters at the start of an interval that does not directly follow the previous one: nothing was counted in
// between, and the new counts belong after this time.
func (m *moment) holdAt(t int64) {
	for key, c := range m.load.counters {
		if key.name != Backlog && key.name != InFlight && key.gauge == 0 {
			m.float(c, t)
		}
	}
	for _, h := range m.load.times {
		m.histogram(h, t)
	}
}

// spreadStep is the distance of the values that a long interval gets; spreadMax bounds their number.
const (
	spreadStep = 1000 // milliseconds
	spreadMax  = 600
)

// spread adds values within an interval that lasts longer than a second and a half, on a straight line: what happened in it is not
// known, so its rate is the same everywhere in it, and not that of the interval before.
func (m *moment) spread(iv *interval.Interval) {
	steps := (m.end - m.start + spreadStep/2) / spreadStep
	if steps < 2 || steps > spreadMax || m.load.lastT == 0 {
		return
	}
	for i := int64(1); i < steps; i++ {
		share := float64(i) / float64(steps)
		for d := range iv.Directions {
			name, t := m.load.engine.Operation(d), &iv.Directions[d]
			for key, by := range map[counterKey]uint64{{name: Operations, operation: name}: t.Operations, {name: Bytes, operation: name}: t.Bytes} {
				if c := m.load.counters[key]; c != nil {
					at := m.start + int64(share*float64(m.end-m.start))
					m.store.put(value{ref: &c.ref, labels: c.labels, millis: at, number: c.value + share*float64(by)})
				}
			}
		}
	}
}

func (m *moment) finish() {
	for _, c := range m.load.counters {
		m.float(c, m.end)
	}
	for _, t := range m.load.times {
		m.histogram(t, m.end)
	}
}

func (m *moment) float(c *counter, t int64) {
	m.store.put(value{ref: &c.ref, labels: c.labels, millis: t, number: c.value})
}

func (m *moment) histogram(t *timeSeries, at int64) {
	if r := m.store.remote; r != nil {
		r.times(t, at, t.last)
		t.last = nil
	}
	if m.store.disk.fault() == nil {
		m.store.values = append(m.store.values, value{ref: &t.ref, labels: t.labels, millis: at, times: t.cells.histogram()})
	}
}

func (m *moment) labels(key counterKey) labels.Labels {
	b := labels.NewScratchBuilder(10)
	b.Add(model.MetricNameLabel, key.name)
	for name, value := range m.load.labels {
		if value != "" {
			b.Add(name, value)
		}
	}
	switch {
	case key.gauge > 0:
		g := m.load.engine.Gauges[key.gauge-1]
		b.Add("gauge", g.Name)
		if g.Unit != "" {
			b.Add("unit", g.Unit)
		}
	case key.operation != "" && m.load.engine.DoesIO():
		b.Add("direction", key.operation)
	case key.operation != "":
		b.Add("operation", key.operation)
	}
	if key.class != "" {
		b.Add("class", key.class)
	}
	b.Sort()
	return b.Labels()
}
