package impact

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

const (
	second = int64(analysis.CellLength)
	// baselineMin is the shortest baseline. Of a longer stretch, its second half is taken, so that the recovery from an earlier event
	// and the warm-up are left out; without an earlier event at least baselineEnough of it, and always at most baselineMax.
	baselineMin    = 10 * second
	baselineEnough = 60 * second
	baselineMax    = 300 * second
	// settling is left out at the start of a stretch that is long enough without it.
	settling = 2 * second
	// duringMin is how long an event at least lasts for its latency: effects follow a step that is a moment.
	duringMin = 10 * second
	// afterMax is how long after that the latency afterwards is taken from.
	afterMax = 600 * second
	// together is how close losses of agents or VMs, and the begins of short steps, are to be one event.
	together = 2 * second
	// cutNotice is how long after a step the end of a load that it cut off may be reported.
	cutNotice = 60 * second
)

// event is something that happened in the run phase.
type event struct {
	result.Impact
	group     string          // that its step acts on
	starts    *analysis.Start // the workload that it started
	taken     map[string]bool // VMs that it took away
	exposures []*exposure
}

// exposure is one load that ran over an event.
type exposure struct {
	start      analysis.LoadStart
	baseline   result.Window // empty if there was none
	fromNanos  int64         // of the event
	eventTo    int64
	duringTo   int64
	untilNanos int64
	taken      map[string]bool // as that of the event
	failed     map[string]bool // VMs on which the load failed
	watches    map[string]*watch
	eighths    [2][8]analysis.Times // of the baseline: of VMs that lived on, and of those that the event took away
}

func findEvents(t *analysis.Timeline) []*event {
	phase, ok := t.Phase("run")
	if !ok {
		return nil
	}
	events := stepEvents(t)
	for i := range t.Starts {
		s := &t.Starts[i]
		if s.FromNanos >= phase.FromNanos && s.FromNanos < phase.ToNanos {
			key := analysis.Start{Workload: s.Workload, Instance: s.Instance}
			events = append(events, &event{starts: &key, taken: map[string]bool{}, Impact: result.Impact{Event: labelOf(t, s),
				Kind: result.ImpactNeighbor, Subjects: []string{s.Workload}, FromNanos: s.FromNanos, ToNanos: min(s.ToNanos, phase.ToNanos)}})
		}
	}
	events = append(events, losses(t, phase, events)...)
	slices.SortStableFunc(events, func(a, b *event) int { return cmp.Compare(a.FromNanos, b.FromNanos) })
	events = joined(events)
	cuts := cutsOf(t, events)
	for _, e := range events {
		e.Overlaps, e.Loads, e.With = []string{}, []result.ImpactLoad{}, append([]string{}, e.With...)
		if e.Subjects == nil {
			e.Subjects = []string{}
		}
		for i := range t.Starts {
			if s := &t.Starts[i]; s.FromNanos < e.FromNanos && s.ToNanos > e.FromNanos && !e.startsLoad(s) {
				load := *s
				load.FromNanos = max(load.FromNanos, phase.FromNanos) // rates are known of the run phase only
				e.expose(t, load, cuts)
			}
		}
	}
	events = slices.DeleteFunc(events, func(e *event) bool {
		measured := func(x *exposure) bool { return x.baseline.ToNanos > 0 }
		return len(e.exposures) == 0 || e.starts != nil && !slices.ContainsFunc(e.exposures, measured)
	})
	return events[:min(len(events), eventsMax)]
}

// joined makes one event of steps that follow each other so fast that no second tells them apart.
func joined(events []*event) []*event {
	var out []*event
	var head *event
	isStep := func(e *event) bool {
		return e.starts == nil && e.Kind != result.ImpactAgentLost && e.Kind != result.ImpactVMStopped
	}
	for _, e := range events {
		if head == nil || !isStep(e) || e.FromNanos-head.FromNanos >= together || head.ToNanos-head.FromNanos >= together {
			if out = append(out, e); isStep(e) {
				head = e
			}
			continue
		}
		head.With = append(head.With, e.Event)
		head.ToNanos = max(head.ToNanos, e.ToNanos)
		maps.Copy(head.taken, e.taken)
		switch mine, heads := telling(e.Kind), telling(head.Kind); {
		case mine < heads:
			head.Kind, head.Subjects, head.VMs, head.Calls = e.Kind, e.Subjects, e.VMs, e.Calls
		case mine == heads && (e.Kind == result.ImpactNodeOff || e.Kind == result.ImpactNodeShutdown):
			for _, node := range e.Subjects {
				if !slices.Contains(head.Subjects, node) {
					head.Subjects = append(head.Subjects, node)
				}
			}
			head.VMs = len(head.taken) // of both
		}
	}
	return out
}

// telling is the place of a kind in the order of kinds.
func telling(kind result.ImpactKind) int {
	for i, k := range kinds {
		if k.kind == kind {
			return i
		}
	}
	return len(kinds)
}

// labelOf is the name in windows of the step that started a load: "OLTP (2)" for the second start of OLTP.
func labelOf(t *analysis.Timeline, s *analysis.LoadStart) string {
	label := s.Workload
	for _, a := range t.Acts() {
		if a.Workload == s.Workload && a.FromNanos <= s.FromNanos {
			label = a.Label
		}
	}
	return label
}

func (e *event) startsLoad(s *analysis.LoadStart) bool {
	return e.starts != nil && e.starts.Workload == s.Workload && e.starts.Instance == s.Instance
}

// stepEvents are the steps with a label, except those on workloads: a load is an event over all of its time.
func stepEvents(t *analysis.Timeline) []*event {
	var events []*event
	operations := t.Operations()
	for _, a := range t.Acts() {
		if a.Workload != "" {
			continue
		}
		e := &event{group: a.Group, taken: map[string]bool{}, Impact: result.Impact{Event: a.Label, Kind: result.ImpactStep,
			Simulated: a.Simulated, FromNanos: a.FromNanos, ToNanos: a.ToNanos}}
		e.classify(t, operations)
		events = append(events, e.parts(operations)...)
	}
	for _, ev := range t.Events() {
		if ev.CutByRun && ev.Kind == interval.EventAnnotation {
			cutBy(events, &ev)
		}
	}
	return events
}

// kinds are the operations that determine the kind of a step, the most telling one first.
var kinds = []operationKind{
	{interval.OperationNodeOff, result.ImpactNodeOff}, {interval.OperationNodeShutdown, result.ImpactNodeShutdown},
	{interval.OperationNodeOn, result.ImpactNodeOn}, {interval.OperationMigrate, result.ImpactMigrate},
	{interval.OperationSnapshot, result.ImpactSnapshot}, {interval.OperationClone, result.ImpactClone},
	{interval.OperationDeploy, result.ImpactClone}, {interval.OperationPowerOn, result.ImpactPowerOn},
}

type operationKind struct {
	operation interval.Operation
	kind      result.ImpactKind
}

// classify reads from the operations of a step what it did.
func (e *event) classify(t *analysis.Timeline, operations []result.OperationTook) {
	for _, k := range kinds {
		nodes := k.kind == result.ImpactNodeOff || k.kind == result.ImpactNodeShutdown || k.kind == result.ImpactNodeOn
		vms, most, sum, calls := map[string]bool{}, 0, 0, 0
		for i := range operations {
			o := &operations[i]
			if o.Operation != k.operation || o.FromNanos < e.FromNanos || o.FromNanos > e.ToNanos {
				continue
			}
			e.Kind = k.kind
			switch {
			case nodes && !slices.Contains(e.Subjects, o.Subject):
				e.Subjects = append(e.Subjects, o.Subject)
				if k.kind != result.ImpactNodeOn {
					maps.Copy(e.taken, t.VMsOn(o.Subject, o.FromNanos))
				}
			case o.Subject != "":
				vms[o.Subject] = true
			case o.Part == 0:
				most, sum, calls = max(most, o.VMs), sum+o.VMs, calls+1
			}
		}
		if e.Kind == k.kind {
			slices.Sort(e.Subjects)
			switch e.VMs, e.Calls = max(len(vms), sum), 0; {
			case nodes:
				e.VMs = len(e.taken)
			case k.kind == result.ImpactSnapshot && calls > 1: // of the same VMs, where clones are of new ones
				e.VMs, e.Calls = max(len(vms), most), calls
			}
			return
		}
	}
}

// parts splits a step that acts on VMs again and again, such as one that takes snapshots periodically, into its rounds.
func (e *event) parts(operations []result.OperationTook) []*event {
	var rounds []*event
	for i := range operations {
		o := &operations[i]
		at := slices.IndexFunc(kinds, func(k operationKind) bool { return k.operation == o.Operation })
		if at < 0 || kinds[at].kind != e.Kind || o.FromNanos < e.FromNanos || o.FromNanos > e.ToNanos || len(e.taken)+len(e.Subjects) > 0 {
			continue
		}
		to := o.FromNanos
		if o.ToNanos != nil {
			to = *o.ToNanos
		}
		if n := len(rounds); n > 0 && o.FromNanos-rounds[n-1].ToNanos < baselineMin {
			rounds[n-1].ToNanos = max(rounds[n-1].ToNanos, to)
			continue
		}
		round := *e
		round.taken = map[string]bool{}
		round.FromNanos, round.ToNanos = o.FromNanos, to
		rounds = append(rounds, &round)
	}
	if len(rounds) < 2 {
		return []*event{e}
	}
	for _, round := range rounds {
		round.VMs = 0
		round.classify(nil, operations)
	}
	return rounds
}

// cutBy adds a VM whose load the run cut off to the step that did it.
func cutBy(events []*event, cut *interval.Event) {
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if cut.AtNanos < e.FromNanos || cut.AtNanos > e.ToNanos+cutNotice || e.Kind == result.ImpactNodeOn {
			continue
		}
		if e.taken[cut.Subject] {
			return
		}
		if e.Kind == result.ImpactStep && (e.group == "" || e.group == cut.Group) {
			e.taken[cut.Subject] = true
			e.VMs = len(e.taken)
			return
		}
	}
}

// losses are the losses of agents and VMs that no step caused. Those that happen together are one event.
func losses(t *analysis.Timeline, phase result.Window, steps []*event) []*event {
	var list []*event
	back := map[string]*event{}
	for _, ev := range t.Events() {
		if ev.Kind == interval.EventAgentBack && back[ev.Subject] != nil {
			back[ev.Subject].ToNanos = max(back[ev.Subject].ToNanos, ev.AtNanos)
			delete(back, ev.Subject)
		}
		kind := map[interval.EventKind]result.ImpactKind{
			interval.EventAgentSilent: result.ImpactAgentLost, interval.EventVMStopped: result.ImpactVMStopped}[ev.Kind]
		caused := func(e *event) bool { return e.taken[ev.Subject] && e.FromNanos <= ev.AtNanos }
		if kind == "" || ev.AtNanos < phase.FromNanos || ev.AtNanos >= phase.ToNanos || slices.ContainsFunc(steps, caused) {
			continue
		}
		var e *event
		if n := len(list); n > 0 && list[n-1].Kind == kind && ev.AtNanos-list[n-1].FromNanos <= together {
			e = list[n-1]
		} else {
			e = &event{taken: map[string]bool{}, Impact: result.Impact{Event: string(kind), Kind: kind, FromNanos: ev.AtNanos, ToNanos: ev.AtNanos}}
			list = append(list, e)
		}
		if !e.taken[ev.Subject] {
			e.taken[ev.Subject] = true
			e.Subjects = append(e.Subjects, ev.Subject)
			e.VMs++
		}
		back[ev.Subject] = e
	}
	return list
}

// cut is a moment at which the situation of all loads changes.
type cut struct {
	at    int64
	event *event // that begins or ends there; nil for that of a load
}

// cutsOf lists the beginnings and ends of events and loads, in the order of time.
func cutsOf(t *analysis.Timeline, events []*event) []cut {
	var cuts []cut
	for _, e := range events {
		cuts = append(cuts, cut{e.FromNanos, e}, cut{e.ToNanos, e})
	}
	for i := range t.Starts {
		s := &t.Starts[i]
		if !slices.ContainsFunc(events, func(e *event) bool { return e.startsLoad(s) }) {
			cuts = append(cuts, cut{s.FromNanos, nil}, cut{s.ToNanos, nil})
		}
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(a.at, b.at) })
	return cuts
}

// expose determines with which stretch a load is compared over the event, and until when.
func (e *event) expose(t *analysis.Timeline, s analysis.LoadStart, cuts []cut) {
	x := &exposure{start: s, fromNanos: e.FromNanos, eventTo: e.ToNanos, taken: e.taken, failed: map[string]bool{}, watches: map[string]*watch{}}
	x.baseline = e.baseline(s, cuts)
	x.untilNanos = min(s.ToNanos, e.until(s, cuts))
	x.duringTo = min(max(e.ToNanos, e.FromNanos+duringMin), x.untilNanos)
	for _, ev := range t.Events() {
		if ev.Kind == interval.EventDisturbance && ev.Error != "" && ev.Workload == s.Workload && ev.Instance == s.Instance {
			x.failed[ev.Subject] = true
		}
	}
	e.exposures = append(e.exposures, x)
}

// baseline is the part of the last stretch without any change that is long enough. If it does not reach up to the event, the events
// in between overlap.
func (e *event) baseline(s analysis.LoadStart, cuts []cut) result.Window {
	to := e.FromNanos
	for i := len(cuts) - 1; i >= -1; i-- {
		from := s.FromNanos
		if i >= 0 {
			if cuts[i].at >= e.FromNanos || cuts[i].at >= to {
				continue
			}
			from = max(from, cuts[i].at)
		}
		if to-from >= baselineMin {
			for _, c := range cuts {
				if c.event != nil && c.event != e && c.at >= to && c.at < e.FromNanos {
					e.overlap(c.event)
				}
			}
			length := to - from
			enough := baselineMin
			if i < 0 || cuts[i].event == nil {
				enough = baselineEnough
			}
			skip := max(min(length/2, length-enough), min(settling, length-baselineMin))
			return result.Window{FromNanos: max(from+skip, to-baselineMax), ToNanos: to}
		}
		if to = from; from <= s.FromNanos {
			break
		}
	}
	return result.Window{}
}

// until is the next change after the event. For a workload that started, it is its end, and for a node that lost its power the
// next change after its return.
func (e *event) until(s analysis.LoadStart, cuts []cut) int64 {
	end := e.ToNanos
	for _, c := range cuts {
		own := c.event == e || e.returns(c.event)
		if e.returns(c.event) {
			end = max(end, c.event.ToNanos)
		}
		inside := c.at > e.FromNanos && c.at < end || c.at == e.FromNanos && !own
		if inside && c.event != nil && !own && (c.at < s.ToNanos) {
			e.overlap(c.event)
		}
		if c.at >= end && c.at > e.FromNanos && !own {
			if e.starts != nil {
				break
			}
			return c.at
		}
	}
	if e.starts != nil {
		return e.ToNanos
	}
	return s.ToNanos
}

// returns reports whether o brings back a node that e took away.
func (e *event) returns(o *event) bool {
	return o != nil && o.Kind == result.ImpactNodeOn && len(e.taken)+len(e.Subjects) > 0 && o.FromNanos >= e.FromNanos &&
		(e.Kind == result.ImpactNodeOff || e.Kind == result.ImpactNodeShutdown) &&
		slices.ContainsFunc(o.Subjects, func(node string) bool { return slices.Contains(e.Subjects, node) })
}

func (e *event) overlap(o *event) {
	if !slices.Contains(e.Overlaps, o.Event) {
		e.Overlaps = append(e.Overlaps, strings.Clone(o.Event))
	}
}
