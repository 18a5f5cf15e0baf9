package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
)

// engineDefault is the generator of workloads when nobody chose one.
const engineDefault = "native"

// engines are the generators that run job files. A run has one of them, so that its numbers can be compared.
var engines = []string{"native", "fio"}

// generatorOf returns the name of the generator that drives a workload: what the user chose, what it names itself, or
// what other workloads of the scenario name.
func (c *compiler) generatorOf(w scenario.Workload) string {
	chosen := ""
	if by, ok := c.engineChooser(); ok {
		chosen = by.Generator
	}
	return cmp.Or(c.options.Engine, w.Generator, chosen, engineDefault)
}

// engineChooser returns the first workload that names an engine.
func (c *compiler) engineChooser() (scenario.Workload, bool) {
	for _, w := range c.sc.Workloads {
		if slices.Contains(engines, w.Generator) {
			return w, true
		}
	}
	return scenario.Workload{}, false
}

// checkEngines reports workloads that name different engines, unless the user has chosen one for all, which the plan then
// says.
func (c *compiler) checkEngines() {
	chooser, _ := c.engineChooser()
	named := func(w scenario.Workload) bool { return slices.Contains(engines, w.Generator) }
	several := slices.ContainsFunc(c.sc.Workloads, func(w scenario.Workload) bool {
		return named(w) && w.Generator != chooser.Generator
	})
	for _, w := range c.sc.Workloads {
		switch {
		case c.options.Engine != "" && w.Generator != "" && w.Generator != c.options.Engine:
			c.note("workload %q asks for generator %q and runs with %q, as the command line says", w.Name, w.Generator, c.options.Engine)
		case c.options.Engine != "":
		case several && named(w):
			c.problems.Add(diag.Diagnostic{Code: "two-engines", Pos: w.Pos,
				Message: fmt.Sprintf("workload %q asks for the engine %q, and a run has one engine for all workloads", w.Name, w.Generator),
				Hint:    "name the same generator everywhere, or choose one for all with --engine"})
		case w.Generator == "" && c.generatorOf(w) != engineDefault:
			c.note("workload %q runs with %q too, which workload %q asks for", w.Name, chooser.Generator, chooser.Name)
		}
	}
}

// checkGenerator reports a workload whose generator does not exist.
func (c *compiler) checkGenerator(p *workloadPlan) bool {
	if _, ok := c.catalog.Generators[p.generator]; ok {
		return true
	}
	names := slices.Sorted(maps.Keys(c.catalog.Generators))
	d := diag.Diagnostic{Code: "unknown-generator", Pos: p.scenario.Pos, Hint: "there are " + quotedList(names),
		Message: fmt.Sprintf("workload %q wants generator %q, which does not exist", p.scenario.Name, p.generator)}
	if near := diag.Nearest(p.generator, names); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.problems.Add(d)
	return false
}
