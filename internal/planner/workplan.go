package planner

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// workloadPlan is a workload while the plan is under construction.
type workloadPlan struct {
	scenario  scenario.Workload
	generator string
	kind      load.Kind
	load      bool          // some step starts it
	prefill   bool          // some step prefills it
	runtime   time.Duration // the longest runtime that a step requests; 0: to completion
	depth     int           // of the first prefill
	loadPlan  *load.Plan
	fillPlan  *load.Plan
	scale     load.Scale
}

// workloads has the generators plan the loads of a script's steps, and places their VMs.
type workloads struct{ *script }

// planGroups places the VMs of every group, with the counts of a rehearsal if one was requested.
func (c workloads) planGroups() {
	counts, deployed := c.groupCounts(c.inventory.Nodes)
	whole, _ := c.groupCounts(c.nodes)
	scaled := map[string]map[int]int{}
	if c.options.Rehearse > 0 {
		scaled = rehearsalCounts(c.sc.Groups, counts)
	}
	prefixes := namePrefixes(c.sc.Groups)
	var ignored diag.List
	first := c.newView(&ignored)
	for _, g := range c.sc.Groups {
		series := counts[g.Name]
		p := plan.Group{
			Name: g.Name, Prefix: prefixes[g.Name], Template: g.Template,
			VCPUs: cmp.Or(g.VCPUs, vcpusDefault), RAMBytes: cmp.Or(g.RAMBytes, ramBytesDefault),
			ExporterPorts: g.ExporterPorts, NodeIndexes: first.GroupNodes(g.Name), Counts: scaled[g.Name],
			ScenarioCount: whole[g.Name][0], ScenarioCountFinal: slices.Max(whole[g.Name]), VMs: []plan.VM{}, Disks: []plan.Disk{},
		}
		if g.CPUSockets > 0 {
			p.Topology = c.topology(g, p.VCPUs)
		}
		p.Count, p.CountFinal = p.Scaled(series[0]), p.Scaled(slices.Max(series))
		for i := range g.DiskCount {
			p.Disks = append(p.Disks, plan.Disk{Device: "/dev/" + target.DiskName(i+1), SizeBytes: g.DiskBytes, ScenarioBytes: g.DiskBytes})
		}
		if !deployed[g.Name] {
			p.Count, p.CountFinal, p.ScenarioCount, p.ScenarioCountFinal = 0, 0, 0, 0
		}
		for i := range p.CountFinal {
			node := c.inventory.Nodes[plan.Placement(i, p.NodeIndexes)]
			p.VMs = append(p.VMs, plan.VM{Name: plan.VMName(p.Prefix, i), NodeID: node.ID, Grown: i >= p.Count})
		}
		c.plan.Groups = append(c.plan.Groups, p)
	}
}

// topology divides the CPUs of a group. A target that cannot is a problem, except in rehearsals, which are not about performance.
func (c workloads) topology(g scenario.Group, vcpus int) target.Topology {
	t := target.Topology{Sockets: g.CPUSockets, Cores: vcpus / (g.CPUSockets * g.CPUThreads), Threads: g.CPUThreads}
	if c.inventory.Topologies {
		return t
	}
	if c.options.Rehearse == 0 {
		c.problems.Add(diag.Diagnostic{Code: codeLacks, Severity: diag.SeverityError, Pos: g.Pos,
			Message: fmt.Sprintf("target %q cannot give VMs of group %q %s", c.inventory.Name, g.Name, t),
			Hint:    fmt.Sprintf("the provider %q has no CPU topologies; leave out cpu_sockets and cpu_threads", c.inventory.Provider)})
	}
	return target.Topology{}
}

// groupCounts returns for each group its successive VM counts on this number of nodes, in the numbers of the scenario, and
// whether a step deploys it.
func (c workloads) groupCounts(nodes []target.Node) (map[string][]int, map[string]bool) {
	var ignored diag.List
	v := c.newView(&ignored)
	v.Inventory.Nodes = nodes
	v.Place(&ignored)
	counts, deployed := map[string][]int{}, map[string]bool{}
	for _, g := range c.sc.Groups {
		counts[g.Name] = []int{v.GroupCount(g.Name)}
	}
	c.walk(v, 1, func(_ int, step verb.Step, late bool) {
		if late {
			return
		}
		e := v.Effect(step)
		if e.Deploys != "" {
			deployed[e.Deploys] = true
		}
		if e.Grows != "" {
			counts[e.Grows] = append(counts[e.Grows], e.GrowTo)
		}
	})
	return counts, deployed
}

// planWorkloads queries each generator for the extents of its workloads, shrinks them for a rehearsal, and sums up.
func (c workloads) planWorkloads() {
	c.noteUses()
	c.checkPairs()
	for _, w := range c.sc.Workloads {
		c.planWorkload(c.plan.workloads[w.Name], true)
	}
}

// listWorkloads puts the workloads into the plan, after sizes and times are chosen.
func (c workloads) listWorkloads() {
	for _, w := range c.sc.Workloads {
		p := c.plan.workloads[w.Name]
		c.plan.Workloads = append(c.plan.Workloads, plan.Workload{Name: w.Name, Group: w.Group, ConfigFile: w.ConfigFile,
			Generator: p.generator, Options: p.scenario.Options, Servers: p.servers(), Scale: c.scale(p), Load: p.loadPlan, Prefill: p.fillPlan})
	}
}

func (c workloads) chooseGenerators() {
	c.checkEngines()
	for _, w := range c.sc.Workloads {
		p := &workloadPlan{scenario: w, generator: c.generatorOf(w)}
		c.plan.workloads[w.Name] = p
		if c.checkGenerator(p) {
			c.checkServers(p)
		}
		p.scaleRates(c.options.RateFactor)
	}
}

// scaleRates multiplies the rates of a job file, on top of what the scenario does with them.
func (p *workloadPlan) scaleRates(factor float64) {
	if factor == 0 || factor == 1 || !p.kind.JobFiles {
		return
	}
	scale, err := (&load.Workload{Options: p.scenario.Options}).RateScale()
	if err != nil {
		return // the generator reports it
	}
	p.scenario.Options = maps.Clone(p.scenario.Options)
	if p.scenario.Options == nil {
		p.scenario.Options = map[string]string{}
	}
	p.scenario.Options[load.OptionRateScale] = strconv.FormatFloat(scale*factor, 'g', 6, 64)
}

// noteUses finds out which workloads are started and prefilled, and for how long.
func (c workloads) noteUses() {
	var ignored diag.List
	v := c.newView(&ignored)
	c.walk(v, 1, func(_ int, step verb.Step, _ bool) {
		if e := v.Effect(step); e.Load != nil {
			c.noteUse(*e.Load, v)
		}
	})
}

func (c workloads) noteUse(l verb.LoadSpec, v *verb.View) {
	p := c.plan.workloads[l.Workload]
	switch {
	case !l.Prefill:
		p.load = true
		p.runtime = max(p.runtime, l.Runtime)
	case !p.prefill:
		vms := v.VMs(p.dataGroup())
		p.prefill, p.depth = true, l.PrefillDepth(vms, min(vms, len(v.GroupNodes(p.dataGroup()))))
	}
}

// planWorkload fills in the generator's plan for the current sizes. Errors are reported when report is set; those of a
// workload that no step uses are warnings.
func (c workloads) planWorkload(p *workloadPlan, report bool) {
	p.loadPlan, p.fillPlan = nil, nil
	used := p.load || p.prefill
	if p.load || !used {
		p.loadPlan = c.askGenerator(p, false, used, report)
	}
	if p.prefill {
		p.fillPlan = c.askGenerator(p, true, used, report)
		if group, known := c.plan.Group(p.scenario.Group); known && report && p.fillPlan != nil {
			c.checkReplaced(p, p.fillPlan, group.CountFinal)
		}
	}
	if !used {
		p.loadPlan = nil // only its warnings are needed
	}
}

func (c workloads) askGenerator(p *workloadPlan, prefill, used, report bool) *load.Plan {
	group, ok := c.plan.Group(p.scenario.Group)
	if !ok {
		if report {
			c.problems.Errorf(p.scenario.Pos, "unknown-group", "workload %q: unknown group %q", p.scenario.Name, p.scenario.Group)
		}
		return nil
	}
	w := c.workloadValue(p, group)
	w.Prefill = prefill
	if prefill {
		w.Runtime = 0
		w.Options = verb.WithPrefillDepth(w.Options, p.kind, p.depth)
	}
	answer, err := p.kind.Generator.Plan(w)
	if report {
		c.reportGenerator(p, answer.Issues, err, used)
	}
	if err != nil {
		return nil
	}
	return &answer
}

func (c workloads) workloadValue(p *workloadPlan, group plan.Group) load.Workload {
	w := load.Workload{
		Name: p.scenario.Name, Group: group.Name, VM: plan.VMName(group.Prefix, 0), Instance: 1, Generator: p.generator,
		ConfigName: p.scenario.ConfigFile, Config: c.sc.Files[p.scenario.ConfigFile], Options: p.scenario.Options,
		Runtime: p.runtime, Seed: c.options.Seed, Scale: c.scale(p),
	}
	w.Remote.VMs = group.Count
	if s := p.servers(); s != nil && !s.First {
		servers, _ := c.plan.Group(s.Group)
		for _, i := range s.Of(0, servers.Count) {
			w.Remote.Peers = append(w.Remote.Peers, load.Peer{VM: plan.VMName(servers.Prefix, i), Clients: s.Clients(group.Count, servers.Count)})
		}
	}
	data, _ := c.plan.Group(p.dataGroup())
	for _, d := range data.Disks {
		// The generator scales by itself, so it receives the size that the scenario assumes.
		w.Devices = append(w.Devices, load.Device{Name: d.Device, Path: d.Device, SizeBytes: d.ScenarioBytes,
			ActualBytes: d.SizeBytes})
	}
	return w
}

func (c workloads) reportGenerator(p *workloadPlan, issues diag.List, err error, used bool) {
	add := func(d diag.Diagnostic) {
		if !used && d.Severity == diag.SeverityError {
			d.Severity = diag.SeverityWarning
		}
		if !slices.Contains(c.problems, d) { // several workloads share one file
			c.problems.Add(d)
		}
	}
	for _, d := range issues {
		add(d)
	}
	if err == nil {
		return
	}
	var list *diag.ListError
	if errors.As(err, &list) {
		for _, d := range list.List {
			add(d)
		}
		return
	}
	d := diag.Diagnostic{Code: "bad-workload", Severity: diag.SeverityError, Pos: p.scenario.Pos,
		Message: fmt.Sprintf("workload %q: %v", p.scenario.Name, err)}
	var user *diag.Error
	if errors.As(err, &user) {
		d.Hint = user.Hint
	}
	var faults load.OptionFaults
	errors.As(err, &faults)
	for _, f := range faults {
		d.Message = fmt.Sprintf("workload %q: %s", p.scenario.Name, f.Text)
		if d.Pos = p.scenario.Pos; p.scenario.OptionPos[f.Option].Line > 0 {
			d.Pos = p.scenario.OptionPos[f.Option]
		}
		add(d)
	}
	if len(faults) == 0 {
		add(d)
	}
}

// touchedBytes counts the distinct bytes that all workloads of a group touch on one VM.
func (p *Plan) touchedBytes(group string) int64 {
	var all []extent.Extent
	for _, w := range p.workloads {
		for _, answer := range []*load.Plan{w.loadPlan, w.fillPlan} {
			if answer != nil && w.dataGroup() == group {
				all = append(all, answer.Extents...)
			}
		}
	}
	return extent.Bytes(all)
}

// scale is that of a workload in a rehearsal.
func (c *script) scale(p *workloadPlan) load.Scale {
	s := p.scale
	if c.factor < 1 {
		s.Times = c.factor
	}
	return s
}

// loadSizes returns for each load how many bytes one run of it moves on each VM, if its size bounds it, and the duration
// in its configuration, with a time factor.
func (c *script) loadSizes(factor float64) map[string]verb.LoadSize {
	out := map[string]verb.LoadSize{}
	for name, w := range c.plan.workloads {
		for prefill, answer := range map[bool]*load.Plan{false: w.loadPlan, true: w.fillPlan} {
			if answer == nil {
				continue
			}
			n := answer.BytesWritten
			if n <= 0 {
				n = 0
				for _, e := range answer.Extents {
					n += e.Length
				}
			}
			size := verb.LoadSize{Bytes: n, Least: answer.TakesLeast, Most: answer.TakesMost}
			if shortest := answer.TakesShortest; shortest > 0 {
				size.Least = shortened(size.Least, factor/c.planned, shortest)
				size.Most = shortened(size.Most, factor/c.planned, shortest)
			}
			out[verb.LoadKey(name, prefill)] = size
		}
	}
	return out
}

// shortened is a time in a rehearsal; 0 is none.
func shortened(d time.Duration, factor float64, shortest time.Duration) time.Duration {
	if d == 0 || factor >= 1 {
		return d
	}
	return min(d, max(shortest, time.Duration(float64(d)*factor)))
}
