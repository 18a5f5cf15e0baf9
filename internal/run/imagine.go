package run

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// CheckCalls says what is wrong with the calls of all phases taken one by one, without a target: steps that do not exist,
// arguments that they do not take, or lack, or that name nothing or are impossible. It makes sense for a scenario that
// was read in part only, whose steps may lack others before them. Compile says the same and more, but only for a
// scenario that was read.
func CheckCalls(sc *scenario.Scenario, catalog Catalog) diag.List { return imagine(sc, catalog, true) }

// CheckScenario says what Compile would refuse on any target: what CheckCalls says, steps in a wrong order, windows of
// expectations that no step makes, and queries that cannot be parsed.
func CheckScenario(sc *scenario.Scenario, catalog Catalog) diag.List {
	return imagine(sc, catalog, false)
}

// imaginedNodes are the sizes of the targets that imagine binds a scenario to: what both refuse is no matter of the target.
var imaginedNodes = [2]int{3, 250}

// imagine binds a scenario to targets that have everything and keeps the errors that are the same on all of them.
func imagine(sc *scenario.Scenario, catalog Catalog, partial bool) diag.List {
	var compilers [len(imaginedNodes)]*compiler
	for i, count := range imaginedNodes {
		c := imagined(sc, catalog, count)
		c.bindAll(partial)
		c.checkWindows()
		c.checkQueries()
		c.checkGenerators()
		c.point()
		compilers[i] = c
	}
	few, many := compilers[0], compilers[1]
	var list diag.List
	for _, d := range few.problems {
		same := func(o diag.Diagnostic) bool { return o.Pos == d.Pos && o.Code == d.Code }
		if d.Severity == diag.SeverityError && !slices.Contains(targetCodes, d.Code) && slices.ContainsFunc(many.problems, same) {
			list.Add(d)
		}
	}
	return list
}

// imagined returns a compiler for a target with that many nodes that can do everything.
func imagined(sc *scenario.Scenario, catalog Catalog, nodes int) *compiler {
	c := &compiler{sc: sc, catalog: catalog, options: Options{AllowShell: true}, factor: 1, imagined: true,
		inventory: imaginedInventory(nodes, fmt.Sprintf("target with %d nodes", nodes))}
	for _, k := range catalog.Steps {
		c.capabilities = append(c.capabilities, k.Needs...)
	}
	c.plan = c.newPlan()
	return c
}

func imaginedInventory(count int, name string) target.Inventory {
	inventory := target.Inventory{Name: name, Simulated: true, AnyTemplate: true, PowerAllowed: true, Overcommits: true}
	for _, n := range target.VirtualNodes(count) {
		n.HasBMC, n.Name = true, name+" "+n.Name
		inventory.Nodes = append(inventory.Nodes, n)
	}
	return inventory
}

// CheckOn says what is wrong with the calls and groups of a scenario that was read in part only, on a target.
func CheckOn(sc *scenario.Scenario, inventory target.Inventory, capabilities []target.Capability, catalog Catalog,
	options Options) diag.List {
	c := newCompiler(sc, inventory, capabilities, catalog, options)
	c.bindAll(true)
	c.point()
	return slices.DeleteFunc(c.problems, func(d diag.Diagnostic) bool { return d.Severity != diag.SeverityError })
}

// probe is a job file that every generator of job files plans, to learn what it says of options alone.
const probe = "[probe]\nfilename=/dev/sdb\nrw=read\nbs=4k\nsize=1m\n"

// checkGenerators reports workloads whose generator does not exist or does not take their options.
func (c *compiler) checkGenerators() {
	if len(c.catalog.Generators) == 0 {
		return // a catalog of steps only
	}
	c.checkEngines()
	for _, w := range c.sc.Workloads {
		p := &workloadPlan{scenario: w, generator: c.generatorOf(w)}
		if !c.checkGenerator(p) || len(w.Options) == 0 {
			continue
		}
		ask := load.Workload{Name: w.Name, Generator: p.generator, ConfigName: w.ConfigFile, Config: probe,
			Devices: []load.Device{{Name: "/dev/sdb", Path: "/dev/sdb", SizeBytes: 1 << 30}}}
		if _, err := c.catalog.Generators[p.generator].Plan(ask); err != nil {
			continue // it cannot plan here at all
		}
		ask.Options = w.Options
		answer, err := c.catalog.Generators[p.generator].Plan(ask)
		c.reportGenerator(p, answer.Issues, err, true)
	}
}
