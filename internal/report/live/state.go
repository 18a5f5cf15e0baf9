package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	liveSeconds      = 60 // seconds that a sparkline shows
	liveRateSeconds  = 3  // seconds over which rates are averaged
	liveQuietSeconds = 5  // without new data, after those, until rates are no longer shown
	liveDelaySeconds = 1  // the newest seconds, for which some VMs have not reported yet
)

// state is the state of a View. It does no I/O.
type state struct {
	title     string
	rehearsal bool
	total     time.Duration
	planned   map[int]plan.Step
	steps     int

	zero    time.Time // of the run's axis on this machine's clock; zero value: no event received yet
	phase   string
	done    int
	open    []interval.Event
	loads   []*liveLoad
	starts  map[string]int
	engines map[string]bool   // loads for which another engine than planned was reported
	units   map[string]string // of the rates of workloads
	silent  map[string]int64  // VMs that do not answer, since when
	boots   map[string]bool   // VMs that were powered on and whose agents have not answered yet
	stopped bool
}

type liveLoadKey struct {
	workload string
	instance int
	prefill  bool
}

// liveLoad is one running workload.
type liveLoad struct {
	key        liveLoadKey
	start      int // counts the starts of this workload from 1; 0 for a prefill
	from       int64
	vms        map[string]bool // true while it runs there
	seconds    map[int64]*liveSecond
	newest     int64
	operations uint64
	bytes      uint64
	errors     uint64
	latency    stat.Histogram
	unit       string // of its rate
}

type liveSecond struct {
	operations uint64
	latency    stat.Histogram
	vms        map[string]liveRate // nil when the second is too old for rates
}

// liveRate is what one VM did in one second.
type liveRate struct{ operations, bytes uint64 }

func (s *state) init() {
	s.planned, s.starts, s.engines, s.units = map[int]plan.Step{}, map[string]int{}, map[string]bool{}, map[string]string{}
	s.silent, s.boots = map[string]int64{}, map[string]bool{}
}

func (s *state) setPlan(p *plan.Plan) {
	s.title = draw.Clean(cmp.Or(p.Scenario.DisplayName, p.Scenario.Name))
	s.rehearsal = p.Rehearsal != nil
	s.total = p.Estimate.Total
	for _, step := range p.Steps {
		s.planned[step.ID] = step
		s.steps++
	}
	for _, w := range p.Workloads {
		if w.Load != nil {
			s.units[w.Name] = w.Load.Engine.RateUnit()
		}
	}
}

// event processes an event and returns the lines that stay. In plain mode, starts are lines too.
func (s *state) event(e interval.Event, plain bool) []string {
	if s.zero.IsZero() {
		s.zero = time.Now().Add(-time.Duration(e.AtNanos))
	}
	at := unit.FormatClock(e.AtNanos) + "  "
	switch e.Kind {
	case interval.EventPhaseStarted:
		s.phase = e.Phase
		return []string{at + draw.Clean(e.Phase) + " phase"}
	case interval.EventStepStarted:
		s.open = append(s.open, e)
		if plain {
			return []string{at + stepHeading(e) + " started"}
		}
	case interval.EventStepEnded:
		return []string{at + s.endStep(e)}
	case interval.EventOperationStarted, interval.EventOperationEnded:
		if e.Operation == interval.OperationBoot && e.Kind == interval.EventOperationStarted {
			s.boots[e.Subject] = true
		} else if e.Operation == interval.OperationBoot {
			delete(s.boots, e.Subject)
		}
	case interval.EventWorkloadEnd:
		return s.endLoad(e, at)
	case interval.EventRunEnded:
		s.stopped = true
		s.open = nil
	case interval.EventEngine:
		if key := fmt.Sprint(e.Workload, e.Instance, e.Prefill); !s.engines[key] { // the first VM reports for all
			s.engines[key] = true
			return []string{at + oneLine(e.Message)}
		}
	case interval.EventAnnotation, interval.EventDisturbance, interval.EventLog, interval.EventRemoved, interval.EventStarts, interval.EventSteady, interval.EventClockJump,
		interval.EventAgentSilent, interval.EventAgentBack, interval.EventVMStopped, interval.EventTaskStarted, interval.EventTaskEnded,
		interval.EventPlatform:
		s.noteSilence(e)
		text := oneLine(cmp.Or(e.Message, string(e.Kind)))
		switch e.Kind {
		case interval.EventDisturbance:
			text = "disturbance: " + text
		case interval.EventStarts:
			text = draw.Clean(e.Workload) + ": " + text
		case interval.EventClockJump:
			text = draw.Clean(e.Subject) + ": " + text
		case interval.EventTaskStarted:
			text = "task " + text
		case interval.EventTaskEnded:
			if e.Error == "" {
				return nil // the begin of the next task says it
			}
			text = draw.Clean(e.Subject) + ": " + text + ": " + oneLine(e.Error)
		}
		return []string{at + text}
	}
	return nil
}

func stepHeading(e interval.Event) string {
	text := draw.Clean(e.Step)
	if subject := cmp.Or(e.Workload, e.Group, e.Subject, e.Message); subject != "" { // the message of a step is what it is about
		text += " " + draw.Clean(subject)
	}
	if e.Simulate {
		text += " (simulated)"
	}
	return text
}

// endStep closes the step and describes its outcome.
func (s *state) endStep(e interval.Event) string {
	text := stepHeading(e)
	i := slices.IndexFunc(s.open, func(o interval.Event) bool {
		return o.StepID == e.StepID && o.Step == e.Step && o.Phase == e.Phase
	})
	took := ""
	if i >= 0 {
		took = " after " + draw.Duration(e.AtNanos-s.open[i].AtNanos)
		s.open = slices.Delete(s.open, i, i+1)
	}
	if _, known := s.planned[e.StepID]; known {
		s.done++
	}
	switch {
	case e.Canceled != "":
		return text + " CANCELED" + took + " (" + oneLine(e.Canceled) + ")"
	case e.Error != "":
		return text + " FAILED" + took + ": " + oneLine(e.Error)
	}
	return text + " done" + took
}

func (s *state) endLoad(e interval.Event, at string) []string {
	var lines []string
	s.loads = slices.DeleteFunc(s.loads, func(l *liveLoad) bool {
		if l.key.workload != e.Workload || l.key.instance != e.Instance || l.key.prefill != e.Prefill {
			return false
		}
		lines = append(lines, at+l.farewell(e))
		return true
	})
	return lines
}

// farewell summarizes a workload that ended.
func (l *liveLoad) farewell(e interval.Event) string {
	moved := ""
	if l.movesBytes() {
		moved = ", " + unit.FormatBytes(int64(l.bytes))
	}
	text := fmt.Sprintf("workload %s ended after %s", l.name(), draw.Duration(e.AtNanos-l.from))
	if l.counted() {
		text += fmt.Sprintf(": %s operations%s, p50 %s, p99 %s, %s errors", unit.FormatWhole(l.operations), moved,
			draw.Quantity(l.latency.Quantile(0.5), "ns"), draw.Quantity(l.latency.Quantile(0.99), "ns"), unit.FormatWhole(l.errors))
	}
	if e.Error != "" {
		text += "; FAILED: " + oneLine(e.Error)
	}
	return text
}

// movesBytes reports whether its bytes are of interest: transactions have none.
func (l *liveLoad) movesBytes() bool { return l.bytes > 0 || l.unit == interval.Engine{}.RateUnit() }

// counted reports whether its operations are, so far: a prefill by a program that prints none, such as one of a database, has only its time.
func (l *liveLoad) counted() bool { return !l.key.prefill || l.operations > 0 || l.errors > 0 }

func (l *liveLoad) name() string {
	text := draw.Clean(l.key.workload)
	if l.key.prefill {
		text += " (prefill)"
	}
	if l.start > 1 {
		text += fmt.Sprintf(" (start %d)", l.start)
	}
	return text
}

func (s *state) interval(iv *interval.Interval) {
	if s.zero.IsZero() {
		s.zero = time.Now().Add(-time.Duration(iv.EndNanos()))
	}
	l := s.load(iv)
	l.vms[iv.VM] = !iv.Final
	at := (iv.StartNanos + iv.LengthNanos/2) / int64(time.Second)
	if at > l.newest {
		l.newest = at
		for old := range l.seconds {
			switch {
			case old < at-liveSeconds-liveDelaySeconds:
				delete(l.seconds, old)
			case old < at-liveRateSeconds-liveDelaySeconds:
				l.seconds[old].vms = nil
			}
		}
	}
	second := l.seconds[at]
	if second == nil {
		second = &liveSecond{}
		if at >= l.newest-liveSeconds-liveDelaySeconds {
			l.seconds[at] = second
		}
	}
	var rate liveRate
	for d := range iv.Directions {
		t := &iv.Directions[d]
		second.operations += t.Operations
		rate.operations += t.Operations
		rate.bytes += t.Bytes
		if !t.Late() {
			second.latency.Merge(t.ResponseOrService())
		}
		l.latency.Merge(t.ResponseOrService())
		l.operations += t.Operations
		l.bytes += t.Bytes
		l.errors += t.ErrorCount()
	}
	if at >= l.newest-liveRateSeconds-liveDelaySeconds {
		second.add(iv.VM, rate)
	}
}

// add counts the operations of a VM: a second may contain more than one of its intervals.
func (s *liveSecond) add(vm string, rate liveRate) {
	if s.vms == nil {
		s.vms = map[string]liveRate{}
	}
	have := s.vms[vm]
	s.vms[vm] = liveRate{have.operations + rate.operations, have.bytes + rate.bytes}
}

func (s *state) load(iv *interval.Interval) *liveLoad {
	key := liveLoadKey{iv.Workload, iv.Instance, iv.Prefill}
	for _, l := range s.loads {
		if l.key == key {
			return l
		}
	}
	l := &liveLoad{key: key, from: iv.StartNanos, vms: map[string]bool{}, seconds: map[int64]*liveSecond{}, unit: cmp.Or(s.units[iv.Workload], interval.Engine{}.RateUnit())}
	if !iv.Prefill {
		s.starts[iv.Workload]++
		l.start = s.starts[iv.Workload]
	}
	s.loads = append(s.loads, l)
	return l
}

// recent sums up the last complete seconds: rates per second and the latency of their operations. A VM on which the load has
// ended has no rate, however recent its last seconds are: if the other VMs are silent, no newer data follows. Latency covers all
// VMs until the load has ended on all of them.
func (l *liveLoad) recent(s *state) (operations, bytes float64, latency stat.Histogram) {
	last := l.newest - liveDelaySeconds
	if _, ok := l.seconds[last]; !ok {
		last = l.newest // it has only just begun
	}
	n, goesOn := 0, l.goesOn()
	for at := last; at > last-liveRateSeconds; at-- {
		second := l.seconds[at]
		if second == nil {
			continue
		}
		n++
		for vm, rate := range second.vms {
			if _, silent := s.silent[vm]; l.vms[vm] && !silent {
				operations += float64(rate.operations)
				bytes += float64(rate.bytes)
			}
		}
		if goesOn {
			latency.Merge(&second.latency)
		}
	}
	return operations / float64(max(1, n)), bytes / float64(max(1, n)), latency
}

// heardNothingOf reports whether all VMs of a load have been silent for so long that its last rates are outdated.
func (s *state) heardNothingOf(l *liveLoad) bool {
	if l.goesOn() && len(s.stale(l)) == l.running() {
		return true
	}
	return l.goesOn() && s.elapsed() > time.Duration(l.newest+liveRateSeconds+liveQuietSeconds)*time.Second
}

// running is the number of VMs on which the load runs.
func (l *liveLoad) running() int {
	n := 0
	for _, runs := range l.vms {
		if runs {
			n++
		}
	}
	return n
}

// oneLine puts a text on one line; joined errors have a line each.
func oneLine(text string) string {
	return textio.Line(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// goesOn reports whether the load runs on any VM.
func (l *liveLoad) goesOn() bool {
	for _, runs := range l.vms {
		if runs {
			return true
		}
	}
	return false
}

// history is the operations of the last complete seconds, oldest first.
func (l *liveLoad) history(columns int) []float64 {
	var list []float64
	for at := l.newest - liveDelaySeconds - int64(columns) + 1; at <= l.newest-liveDelaySeconds; at++ {
		if second := l.seconds[at]; second != nil {
			list = append(list, float64(second.operations))
		} else if len(list) > 0 {
			list = append(list, nan)
		}
	}
	return list
}
