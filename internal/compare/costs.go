package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
)

// Cost is what one event cost one load in all runs.
type Cost struct {
	Event    string  `json:"event"`    // label of its step, as in windows
	Title    string  `json:"title"`    // what it did: "Power cut of node-1"
	Workload string  `json:"workload"` // that ran over it
	VMs      string  `json:"vms"`      // "lived_on", or "taken_away" by the event itself
	Figures  []Shift `json:"figures"`

	with []string // further steps at the same time
}

// Sets of VMs that are scored apart.
const (
	livedOn   = "lived_on"
	takenAway = "taken_away"
)

// second is the resolution of times that are read off the seconds of a run, in nanoseconds.
const second = 1e9

// stallMin is the shortest stall that is recorded of every generator.
const stallMin = 0.1 * second

// costFigures are the numbers of a cost, in the order of their rows, with their resolution: a difference within it shows nothing.
var costFigures = []struct {
	name, title, unit string
	resolution        float64
	of                func(*result.ImpactScore) bounded
}{
	{"dip", "dip", "ratio", 0.001, dipOf},
	{"stall", "longest stall", "ns", 0.001 * second, stallOf},
	{"first_io", "first I/O", "ns", second, firstOf},
	{"recovery", "back to 5 %", "ns", second, func(s *result.ImpactScore) bounded { return backOf(s, &s.Within5) }},
	{"recovery_10", "back to 10 %", "ns", second, func(s *result.ImpactScore) bounded { return backOf(s, &s.Within10) }},
	{"lost_operations", "operations lost", "operations", 1, lostOf},
	{"failed_operations", "operations failed", "operations", 1, func(s *result.ImpactScore) bounded { return exactly(float64(s.Lost.Failed)) }},
	{"p99_during", "p99 during", "ns", 0, duringOf}, // its resolution is that of the buckets
}

type costKey struct {
	event, workload, vms string
	nth                  int
}

// comparedCosts pairs events by label and load, in the order of the first run that has them. Those that only one side has are left out:
// base is the number of runs on the first side.
func comparedCosts(documents []*document.Document, base int) []Cost {
	var keys []costKey
	first := map[costKey]*result.Impact{}
	scores := map[costKey][]*result.ImpactScore{}
	for run, d := range documents {
		seen := map[string]int{}
		for i := range d.Impacts {
			m := &d.Impacts[i].Impact
			seen[m.Event]++
			for k := range m.Loads {
				l := &m.Loads[k]
				for vms, score := range map[string]*result.ImpactScore{livedOn: l.LivedOn, takenAway: l.TakenAway} {
					key := costKey{m.Event, l.Workload, vms, seen[m.Event]}
					if score == nil {
						continue
					}
					if scores[key] == nil {
						keys, first[key], scores[key] = append(keys, key), m, make([]*result.ImpactScore, len(documents))
					}
					scores[key][run] = score
				}
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b costKey) int {
		return cmp.Or(cmp.Compare(first[a].FromNanos, first[b].FromNanos), cmp.Compare(a.event, b.event), cmp.Compare(a.workload, b.workload),
			cmp.Compare(a.vms, b.vms))
	})
	list := []Cost{}
	some := func(of []*result.ImpactScore) bool {
		return slices.ContainsFunc(of, func(s *result.ImpactScore) bool { return s != nil })
	}
	for _, key := range keys {
		if of := scores[key]; some(of[:base]) && some(of[base:]) {
			list = append(list, Cost{Event: key.event, Title: impact.Title(first[key]), Workload: key.workload, VMs: key.vms,
				Figures: costShifts(of), with: first[key].With})
		}
	}
	return list
}

func costShifts(scores []*result.ImpactScore) []Shift {
	list := []Shift{}
	for _, f := range costFigures {
		runs, largest := make([]bounded, len(scores)), 0.0
		for i, s := range scores {
			if runs[i] = notKnown("the event did not happen to this load"); s != nil {
				runs[i] = f.of(s)
			}
			largest = max(largest, runs[i].value)
		}
		s := Shift{Name: f.name, Title: f.title, Unit: f.unit, resolution: f.resolution}
		if s.resolution == 0 {
			s.resolution = stat.BucketError * largest
		}
		if s.fill(runs) && (f.name != "failed_operations" || largest > 0) {
			list = append(list, s)
		}
	}
	return list
}

func dipOf(s *result.ImpactScore) bounded {
	switch detectable := float64(s.Dip.Detectable); {
	case s.Unknown != "":
		return notKnown(s.Unknown)
	case s.Dip.Seen:
		return exactly(float64(s.Dip.Depth))
	case math.IsNaN(detectable):
		return notKnown("the baseline varies too much to see any dip")
	default:
		return bounded{high: min(1, detectable)}
	}
}

func stallOf(s *result.ImpactScore) bounded {
	b := bounded{value: float64(s.Stall.Nanos), low: float64(s.Stall.AtLeastNanos), high: max(float64(s.Stall.Nanos), float64(s.Stall.AtLeastNanos))}
	switch {
	case s.Stall.Open:
		b.value, b.low, b.high = b.high, b.high, math.Inf(1)
	case b.high == 0:
		b.high = stallMin
	}
	return b
}

func firstOf(s *result.ImpactScore) bounded {
	if s.FirstIONanos == nil {
		return notKnown("no operation completed until the load ended or the next event began")
	}
	return exactly(float64(*s.FirstIONanos))
}

func backOf(s *result.ImpactScore, back *result.ImpactBack) bounded {
	switch {
	case back.Nanos != nil:
		return exactly(float64(*back.Nanos))
	case s.Unknown == "" && back.AtLeastNanos > 0:
		return bounded{value: float64(back.AtLeastNanos), low: float64(back.AtLeastNanos), high: math.Inf(1)}
	}
	return notKnown(cmp.Or(back.Unknown, s.Unknown))
}

func lostOf(s *result.ImpactScore) bounded {
	switch lost := float64(s.Lost.Operations); {
	case s.Unknown != "" || math.IsNaN(lost):
		return notKnown(cmp.Or(s.Unknown, "the number of lost operations is not known"))
	case !s.Dip.Seen:
		return bounded{value: lost, low: min(0, lost), high: max(lost, float64(s.Lost.UncertainOperations))}
	default:
		return exactly(lost)
	}
}

func duringOf(s *result.ImpactScore) bounded {
	l := s.Latency.During
	if l == nil || math.IsNaN(float64(l.P99)) {
		return notKnown("no latency during the event")
	}
	if p99 := float64(l.P99); l.AtLeast.Has("p99") {
		return bounded{value: p99, low: p99, high: math.Inf(1)}
	}
	return exactly(float64(l.P99))
}

// matches reports whether a condition is about a number of this cost. A step matches every event of it: "nodes.PowerOff" is that of any
// node.
func (c *Cost) matches(of *Condition, s *Shift) bool {
	named := func(name string) bool {
		return strings.EqualFold(name, of.result) || len(name) > len(of.result) && strings.EqualFold(name[:len(of.result)+1], of.result+" ")
	}
	return s.Name == of.metric && (of.window == "" || strings.EqualFold(of.window, c.Workload)) &&
		(of.result == "" || strings.EqualFold(of.result, c.Title) || named(c.Event) || slices.ContainsFunc(c.with, named))
}

// Load is the workload, and which of its VMs unless they lived on.
func (c *Cost) Load() string {
	if c.VMs == takenAway {
		return c.Workload + " on VMs taken away"
	}
	return c.Workload
}

// Label names a number of a cost: "Power cut of node-1, OLTP, recovery".
func (c *Cost) Label(s *Shift) string {
	return c.Title + ", " + c.Load() + ", " + s.Title
}

// judgedCosts are those of VMs that lived on; of a load without any, those of VMs that the event took away.
func (c *Comparison) judgedCosts() []*Cost {
	var list []*Cost
	for i := range c.Costs {
		cost := &c.Costs[i]
		if cost.VMs == livedOn || !slices.ContainsFunc(c.Costs, func(o Cost) bool {
			return o.VMs == livedOn && o.Event == cost.Event && o.Workload == cost.Workload
		}) {
			list = append(list, cost)
		}
	}
	return list
}

// costHeadline names the costs of events that differ between two sets.
func (c *Comparison) costHeadline() string {
	var parts []string
	tested := 0
	for i := range c.Costs {
		for j := range c.Costs[i].Figures {
			s := &c.Costs[i].Figures[j]
			if s.Verdict != "" && s.Verdict != TooFew {
				tested++
			}
			if s.Verdict == Different {
				parts = append(parts, fmt.Sprintf("%s by %s", c.Costs[i].Label(s), s.ChangeText()))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	more := ""
	if n := len(parts) - namedMax; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf(" The cost of events differs in %d of %s: %s%s.", len(parts), textio.Plural(tested, "number"),
		strings.Join(parts[:min(len(parts), namedMax)], "; "), more)
}

// ChangeText is the difference of two sets with its interval: "+12 s (95 %: +10 s to +14 s)".
func (s *Shift) ChangeText() string {
	interval := s.IntervalText(float64(s.Low), float64(s.High))
	if math.IsNaN(float64(s.Difference)) {
		return interval
	}
	return SignedAmount(s.Unit, s.Difference) + " (95 %: " + interval + ")"
}

// IntervalText prints the ends of an interval of differences; an infinite one is not printed.
func (s *Shift) IntervalText(low, high float64) string {
	switch {
	case math.IsNaN(low) || math.IsInf(low, 0) && math.IsInf(high, 0):
		return "–"
	case math.IsInf(high, 0):
		return "at least " + SignedAmount(s.Unit, result.Number(low))
	case math.IsInf(low, 0):
		return "at most " + SignedAmount(s.Unit, result.Number(high))
	}
	return SignedAmount(s.Unit, result.Number(low)) + " to " + SignedAmount(s.Unit, result.Number(high))
}
