package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// generatorOf returns the name of the generator that drives a workload: the user's choice, the one that the workload
// names, or the one that other workloads of the scenario name.
func (c workloads) generatorOf(w scenario.Workload) string {
	if k, known := c.catalog.Generators.Find(w.Generator); known && !k.JobFiles {
		return w.Generator // whatever engine the user chose
	}
	chosen := ""
	if by, ok := c.engineChooser(); ok {
		chosen = by.Generator
	}
	return cmp.Or(c.options.Engine, w.Generator, chosen, c.catalog.Generators.Default())
}

// engineChooser returns the first workload that names an engine, which is a generator that runs job files.
func (c workloads) engineChooser() (scenario.Workload, bool) {
	i := slices.IndexFunc(c.sc.Workloads, func(w scenario.Workload) bool { return c.catalog.Generators.RunsJobFiles(w.Generator) })
	if i < 0 {
		return scenario.Workload{}, false
	}
	return c.sc.Workloads[i], true
}

// checkEngines reports workloads that name different engines, unless the user has chosen one for all, which the plan then
// mentions.
func (c workloads) checkEngines() {
	chooser, _ := c.engineChooser()
	several := slices.ContainsFunc(c.sc.Workloads, func(w scenario.Workload) bool {
		return c.catalog.Generators.RunsJobFiles(w.Generator) && w.Generator != chooser.Generator
	})
	for _, w := range c.sc.Workloads {
		switch generator := c.generatorOf(w); {
		case w.Generator != "" && w.Generator != generator:
			c.note("workload %q asks for generator %q and runs with %q, as the command line says", w.Name, w.Generator, generator)
		case c.options.Engine != "":
		case several && c.catalog.Generators.RunsJobFiles(w.Generator):
			c.problems.Add(diag.Diagnostic{Code: "two-engines", Pos: w.Pos,
				Message: fmt.Sprintf("workload %q asks for the engine %q, and a run has one engine for all workloads", w.Name, w.Generator),
				Hint:    "name the same generator everywhere, or choose one for all with --engine"})
		case w.Generator == "" && generator != c.catalog.Generators.Default():
			c.note("workload %q runs with %q too, which workload %q asks for", w.Name, chooser.Generator, chooser.Name)
		}
	}
}

// checkGenerator finds the generator of a workload, or reports that there is none.
func (c workloads) checkGenerator(p *workloadPlan) bool {
	kind, ok := c.catalog.Generators.Find(p.generator)
	if ok {
		p.kind = kind
		return true
	}
	names := slices.Sorted(slices.Values(c.catalog.Generators.Names()))
	d := diag.Diagnostic{Code: "unknown-generator", Pos: p.scenario.Pos, Hint: "there are " + strings.Join(names, ", "),
		Message: fmt.Sprintf("workload %q wants generator %q, which does not exist", p.scenario.Name, p.generator)}
	if near := diag.Nearest(p.generator, names); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.problems.Add(d)
	return false
}

// probe is a job file that every generator of job files can plan, used to check options alone.
const probe = "[probe]\nfilename=/dev/sdb\nrw=read\nbs=4k\nsize=1m\n"

// checkGenerators reports workloads whose generator does not exist or does not support their options.
func (c workloads) checkGenerators() {
	if len(c.catalog.Generators) == 0 {
		return // a catalog of steps only
	}
	c.checkEngines()
	prefilled := c.prefilled()
	for _, w := range c.sc.Workloads {
		p := &workloadPlan{scenario: w, generator: c.generatorOf(w)}
		if !c.checkGenerator(p) || !c.checkServers(p) || len(w.Options) == 0 && p.kind.JobFiles {
			continue
		}
		if _, read := c.sc.Files[w.ConfigFile]; w.ConfigFile != "" && !read && !p.kind.JobFiles {
			continue // reported with the reason
		}
		ask := load.Workload{Name: w.Name, Generator: p.generator, ConfigName: w.ConfigFile, Config: c.sc.Files[w.ConfigFile]}
		if w.ServerGroup != "" {
			ask.Remote.Peers = []load.Peer{{VM: w.ServerGroup}}
		}
		if group, known := c.sc.Group(p.dataGroup()); known {
			for i := range group.DiskCount {
				name := "/dev/" + target.DiskName(i+1)
				ask.Devices = append(ask.Devices, load.Device{Name: name, Path: name, SizeBytes: group.DiskBytes})
			}
		}
		if p.kind.JobFiles {
			ask.Devices = []load.Device{{Name: "/dev/sdb", Path: "/dev/sdb", SizeBytes: 1 << 30}}
			ask.Config = probe // lint has rules for job files themselves
			if _, err := p.kind.Generator.Plan(ask); err != nil {
				continue // it cannot plan on this machine
			}
		}
		ask.Options = w.Options
		answer, err := p.kind.Generator.Plan(ask)
		c.reportGenerator(p, answer.Issues, err, true)
		c.checkReplaced(p, &answer, prefilled[w.Name])
	}
}

// prefilled returns the largest number of VMs that prefill each workload at once.
func (c workloads) prefilled() map[string]int {
	var ignored diag.List
	v := c.newView(&ignored)
	vms := map[string]int{}
	c.walk(v, 1, func(_ int, step verb.Step, _ bool) {
		if l := v.Effect(step).Load; l != nil && l.Prefill {
			w, _ := c.sc.Workload(l.Workload)
			vms[l.Workload] = max(vms[l.Workload], v.VMs(w.Group))
		}
	})
	return vms
}

// checkReplaced refuses prefills by which several VMs would replace the same data.
func (c workloads) checkReplaced(p *workloadPlan, answer *load.Plan, vms int) {
	if answer.Replaces == "" || vms < 2 {
		return
	}
	pos, known := p.scenario.OptionPos["endpoint"]
	if !known {
		pos = p.scenario.Pos
	}
	c.problems.Add(diag.Diagnostic{Code: "bad-workload", Severity: diag.SeverityError, Pos: pos,
		Message: fmt.Sprintf("workload %q: each of %d VMs would replace %s in its prefill", p.scenario.Name, vms, answer.Replaces),
		Hint:    "use one VM, or a database for each: endpoint NAME-{n} is NAME-1, NAME-2, …"})
}
