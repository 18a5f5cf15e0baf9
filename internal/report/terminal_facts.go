package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/unit"
)

func (p *textPage) steps(d *document.Document) {
	if len(d.Steps) == 0 {
		return
	}
	p.section("Steps")
	t := document.StepTable(d)
	p.table(&t)
	var log []string
	for _, e := range d.Events {
		if text := document.EventText(e); text != "" && !repeatsWorkload(e) {
			log = append(log, unit.FormatClock(e.AtNanos)+"  "+text)
		}
	}
	if len(log) > 0 {
		p.section("Events")
		for _, l := range log {
			p.text("", l, nil)
		}
	}
}

// repeatsWorkload reports whether e is only the annotation of a workload's start or end, which is also recorded as a separate
// event.
func repeatsWorkload(e interval.Event) bool {
	return e.Kind == interval.EventAnnotation && e.Workload != "" && e.Error == "" &&
		(e.Message == e.Workload+": starting workload" || e.Message == e.Workload+": finished workload")
}

func (p *textPage) facts(d *document.Document) {
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

func (p *textPage) impacts(d *document.Document) {
	if len(d.Impacts) == 0 {
		return
	}
	p.section("Cost of events")
	for i := range d.Impacts {
		p.item(unit.FormatClock(d.Impacts[i].FromNanos), d.Impacts[i].Sentence)
	}
	p.line("")
	t := document.CostTable(d)
	p.table(&t)
}

func (p *textPage) durations(d *document.Document) {
	if t := document.OperationTable(d); len(t.Rows) > 0 {
		p.section("Operation durations")
		p.table(&t)
	}
	if t := document.RecoveryTable(d); len(t.Rows) > 0 {
		p.section("Node recovery")
		p.table(&t)
	}
}
