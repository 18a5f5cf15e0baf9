package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/unit"
)

// complete gives impacts the names of nodes and the units of loads.
func complete(list []result.Impact, m *result.Manifest) []result.Impact {
	names := map[string]string{}
	for _, n := range m.Target.Nodes {
		names[n.ID] = n.Name
	}
	for i := range list {
		for k, subject := range list[i].Subjects {
			list[i].Subjects[k] = cmp.Or(names[subject], subject)
		}
		for k := range list[i].Loads {
			l := &list[i].Loads[k]
			l.Unit = unitOf(l.Quantity, m.Engines[l.Workload])
		}
	}
	return list
}

// costCheck compares the costs of events for the loads of a result with a threshold. The worst counts.
func costCheck(r scenario.Result, x scenario.Threshold, impacts []result.Impact) result.Check {
	c := result.Check{Text: x.Text, Event: x.Event, Unit: "s", Value: result.Number(math.NaN())}
	keep, _ := choose(r)
	var values []measured
	for i := range impacts {
		e := &impacts[i]
		if x.Event != "" && x.Event != e.Event && !slices.Contains(e.With, x.Event) {
			continue
		}
		for k := range e.Loads {
			l := &e.Loads[k]
			score := l.LivedOn
			if x.VMs == "taken_away" || x.VMs == "" && score == nil {
				score = l.TakenAway
			}
			if score != nil && keep(l.Workload, l.Group, false) {
				m := costOf(score, &x)
				if m.atLeast == "" && x.Statistic == "first_io" && math.IsInf(m.value, 1) {
					m.value = float64(l.UntilNanos-e.FromNanos) / 1e9
					m.atLeast = "no operation completed until the load ended or the next event began"
				}
				values = append(values, m)
			}
		}
	}
	switch {
	case len(values) == 0 && x.Event != "":
		c.Reason = fmt.Sprintf("no load of this result ran over an event %q", x.Event)
	case len(values) == 0:
		c.Reason = "no load of this result ran over an event"
	}
	decide(&c, x, values)
	switch x.Statistic {
	case "dip":
		c.Unit, c.Value = "%", 100*c.Value
	case "lost_operations":
		c.Unit = "operations"
	}
	return c
}

// costOf is one cost, and what is not known about it; an infinite first_io did not happen.
func costOf(s *result.ImpactScore, x *scenario.Threshold) measured {
	switch x.Statistic {
	case "dip":
		return dipOf(s, x)
	case "recovery":
		return backOf(s, &s.Within5)
	case "recovery_10":
		return backOf(s, &s.Within10)
	case "stall":
		return stallOf(s, x)
	case "first_io":
		if s.FirstIONanos == nil {
			return measured{value: math.Inf(1)}
		}
		return measured{value: float64(*s.FirstIONanos) / 1e9}
	}
	return lostOf(s, x)
}

func dipOf(s *result.ImpactScore, x *scenario.Threshold) measured {
	m := measured{value: float64(s.Dip.Depth), unknown: s.Unknown}
	if detectable := float64(s.Dip.Detectable); s.Unknown == "" && !s.Dip.Seen && detectable > x.Value {
		m.hides = fmt.Sprintf("no dip was seen, but over ten seconds only one of %s would have been", unit.FormatPercent(math.Round(1000*detectable)/1000))
		if detectable >= 1 {
			m.hides = "the baseline varies too much to see any dip"
		}
	}
	return m
}

func backOf(s *result.ImpactScore, back *result.ImpactBack) measured {
	switch {
	case back.Nanos != nil:
		return measured{value: float64(*back.Nanos) / 1e9}
	case s.Unknown == "" && back.AtLeastNanos > 0:
		return measured{value: float64(back.AtLeastNanos) / 1e9, atLeast: back.Unknown}
	}
	return measured{value: math.NaN(), unknown: back.Unknown}
}

func stallOf(s *result.ImpactScore, x *scenario.Threshold) measured {
	most, least := float64(s.Stall.Nanos)/1e9, float64(s.Stall.AtLeastNanos)/1e9
	m := measured{value: most}
	if s.Stall.Open {
		m.atLeast = "the stall lasted until the load ended or the next event began"
		return m
	}
	high, _ := compare(most, x.Operator, x.Value)
	if low, _ := compare(least, x.Operator, x.Value); low != high {
		m.unknown = fmt.Sprintf("the generator does not record single completions, and the longest stall is between %s and %s",
			unit.FormatLatency(1e9*least), unit.FormatLatency(1e9*most))
	}
	return m
}

func lostOf(s *result.ImpactScore, x *scenario.Threshold) measured {
	m := measured{value: float64(s.Lost.Operations), unknown: s.Unknown}
	uncertain := float64(s.Lost.UncertainOperations)
	switch {
	case s.Unknown != "":
	case !s.Dip.Seen && uncertain > x.Value:
		m.hides = fmt.Sprintf("no dip was seen, but up to %s operations may be missing unseen", unit.FormatCount(uncertain))
	case s.Dip.Seen && math.Abs(m.value-x.Value) < uncertain:
		m.unknown = fmt.Sprintf("the baseline varies too much: %s ± %s operations", unit.FormatCount(m.value), unit.FormatCount(uncertain))
	}
	return m
}

// withoutSteps leaves out loads that are steps of a staircase: they are not neighbors of each other, and their effect is that of
// more workers.
func withoutSteps(impacts []result.Impact, s *result.Scaling) []result.Impact {
	if s == nil {
		return impacts
	}
	return slices.DeleteFunc(impacts, func(i result.Impact) bool {
		return i.Kind == result.ImpactNeighbor && slices.Contains(s.Workloads, i.Subjects[0])
	})
}
