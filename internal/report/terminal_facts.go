package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"

	"github.com/braggdev/bragg/internal/interval"
)

func stepTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"step", "phase", "outcome", "at", "took", "planned"}, Left: 3}
	for _, s := range d.Steps {
		at, took, planned := "–", "–", "–"
		if s.Started {
			at = draw.Clock(s.FromNanos)
		}
		if s.Ended {
			took = draw.Duration(s.ToNanos - s.FromNanos)
		}
		if s.PlannedNanos > 0 {
			planned = draw.Duration(s.PlannedNanos)
		}
		t.Add(s.heading(), s.Phase, s.outcome(d.Ended == endedNotYet), at, took, planned)
	}
	return t
}

func (s *Step) heading() string {
	if s.Subject == "" {
		return s.Name
	}
	return s.Name + " " + s.Subject
}

// outcome says what came of a step; going tells that its run is going on.
func (s *Step) outcome(going bool) string {
	switch {
	case !s.Started && going:
		return "not yet"
	case !s.Ended && going:
		return "running"
	case !s.Started:
		return "not run"
	case s.Error != "":
		return "failed: " + s.Error
	case !s.Ended:
		return "no end"
	case s.Simulated:
		return "done, simulated"
	}
	return "done"
}

func (p *page) steps(d *Document) {
	if len(d.Steps) == 0 {
		return
	}
	p.section("Steps")
	t := stepTable(d)
	p.table(&t)
	var log []string
	for _, e := range d.Events {
		if text := eventText(e); text != "" && !repeatsWorkload(e) {
			log = append(log, draw.Clock(e.AtNanos)+"  "+text)
		}
	}
	if len(log) > 0 {
		p.section("Events")
		for _, l := range log {
			p.text("", l, nil)
		}
	}
}

// repeatsWorkload tells whether e is only the annotation of a start or an end of a workload, which is an event of its
// own beside it.
func repeatsWorkload(e interval.Event) bool {
	return e.Kind == interval.EventAnnotation && e.Workload != "" && e.Error == "" &&
		(e.Message == e.Workload+": starting workload" || e.Message == e.Workload+": finished workload")
}

// eventText is what a list of events says; steps and operations stand in tables of their own.
func eventText(e interval.Event) string {
	switch e.Kind {
	case interval.EventStepStarted, interval.EventStepEnded, interval.EventOperationStarted, interval.EventOperationEnded:
		return ""
	}
	text := strings.ReplaceAll(string(e.Kind), "-", " ")
	for _, part := range []string{e.Phase, e.Workload, e.Group, e.Subject, e.Message} {
		if part != "" {
			text += " · " + part
		}
	}
	if e.Error != "" {
		text += ": " + e.Error
	}
	return text
}

func (p *page) facts(d *Document) {
	p.section("Target and environment")
	p.item("scenario", d.Scenario.Name+"  "+d.Scenario.Hash)
	p.item("preset", d.Scenario.Preset)
	for _, name := range sortedKeys(d.Scenario.Variables) {
		origin := cmp.Or(d.Scenario.Origins[name], "default")
		p.item("variable", name+" = "+d.Scenario.Variables[name]+" ("+origin+")")
	}
	for _, f := range d.Target.Facts {
		p.item("target fact", f[0]+": "+f[1])
	}
	for _, n := range d.Target.Nodes {
		p.item("node", n.Name+" ("+n.ID+")")
	}
	for _, name := range sortedKeys(d.Environment) {
		p.item(name, d.Environment[name])
	}
	for _, name := range sortedKeys(d.Versions) {
		p.item(name, d.Versions[name])
	}
	for _, m := range d.Method {
		p.item("method", m.What+": "+m.How)
	}
	p.item("again", d.Reproduce)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
