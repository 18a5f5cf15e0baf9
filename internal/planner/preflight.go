package planner

import (
	"cmp"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
)

// fullPercentDefault is how full the storage may be after a run, in percent.
const fullPercentDefault = 70

// unfitShownMax bounds how many reasons an error names; a plan has all.
const unfitShownMax = 3

// Preflight refuses a plan that does not fit the target's memory, CPUs, addresses or space.
func Preflight(p *Plan) error {
	if len(p.Unfit) == 0 {
		return nil
	}
	first := p.Unfit[0]
	message := first.Message
	shown := min(len(p.Unfit), unfitShownMax)
	for _, u := range p.Unfit[1:shown] {
		message += "; " + u.Message
	}
	if more := len(p.Unfit) - shown; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return &diag.Error{Code: "does-not-fit", Message: message, Hint: first.Hint, Exit: diag.ExitUnavailable}
}

// fitting compares a plan with its target.
type fitting struct{ *draft }

// fit compares the requirements of the plan with the resources of the target. Resources that the target does not report
// are not checked.
func (c fitting) fit() {
	if c.inventory.Overcommits {
		c.fitProcesses()
	} else {
		c.fitNodes()
	}
	c.fitAddresses()
	c.fitSpace()
	c.fitPrograms()
}

// fitPrograms refuses loads that run programs on VMs of a template without any.
func (c fitting) fitPrograms() {
	templates := map[string]string{}
	for _, g := range c.plan.Groups {
		templates[g.Name] = g.Template
	}
	for _, w := range c.plan.Workloads {
		if w.Load == nil || w.Load.Program == nil || len(w.Load.Program.Needs) == 0 {
			continue
		}
		template := templates[w.Group]
		if s := w.Servers; s != nil && c.inventory.Boots[templates[s.Group]].AgentOnly {
			template = templates[s.Group]
		}
		if !c.inventory.Boots[template].AgentOnly {
			continue
		}
		hint := "use a template of a distribution that has them"
		if command := w.Load.Program.GuestImage(); command != "" {
			hint += "; this makes one: " + command
		}
		programs, _ := w.Load.Program.NeedsText()
		c.unfit("programs", w.Name, fmt.Sprintf("workload %q needs %s, and template %q has no programs but the agent", w.Name, programs, template), hint)
	}
}

// fitAddresses checks the number of VMs, if nodes or the target report how many addresses are available.
func (c fitting) fitAddresses() {
	vms, all := map[string]int{}, 0
	for _, g := range c.plan.Groups {
		for _, vm := range g.VMs {
			vms[vm.NodeID]++
			all++
		}
	}
	const hint = "use fewer VMs, --rehearse, or a larger range of addresses"
	if most := c.inventory.AddressesMax; most > 0 && all > most {
		c.unfit("addresses", c.inventory.Name, fmt.Sprintf("%d VMs need an address each and the target has %d", all, most), hint)
	}
	for _, n := range c.inventory.Nodes {
		if n.AddressesMax > 0 && vms[n.ID] > n.AddressesMax {
			c.unfit("addresses", n.Name, fmt.Sprintf("%d VMs on node %q need an address each and the network there has %d", vms[n.ID], n.Name,
				n.AddressesMax), hint)
		}
	}
}

// fitNodes checks a target that gives VMs the resources they request.
func (c fitting) fitNodes() {
	ram, cpus, largest := map[string]int64{}, map[string]int{}, map[string]int{}
	for _, g := range c.plan.Groups {
		for _, vm := range g.VMs {
			ram[vm.NodeID] += g.RAMBytes
			cpus[vm.NodeID] += g.VCPUs
			largest[vm.NodeID] = max(largest[vm.NodeID], g.VCPUs)
		}
	}
	for _, n := range c.inventory.Nodes {
		if n.RAMBytes > 0 && ram[n.ID] > n.RAMBytes {
			c.unfit("ram", n.Name, fmt.Sprintf("VMs on node %q need %s of memory and it has %s", n.Name,
				unit.FormatBytes(ram[n.ID]), unit.FormatBytes(n.RAMBytes)), "use fewer VMs per node, or --rehearse")
		}
		if n.CPUs > 0 && largest[n.ID] > n.CPUs {
			c.unfit("cpu", n.Name, fmt.Sprintf("a VM on node %q wants %d vCPUs and the node has %d CPUs", n.Name,
				largest[n.ID], n.CPUs), "choose smaller VMs or larger nodes, or --rehearse, which makes VMs smaller")
		} else if n.CPUs > 0 && cpus[n.ID] > n.CPUs {
			c.note("VMs on node %q have %d vCPUs together, it has %d CPUs: they will wait for each other", n.Name,
				cpus[n.ID], n.CPUs)
		}
	}
}

func (c fitting) fitSpace() {
	total, free := c.inventory.TotalBytes, c.inventory.FreeBytes
	need := c.plan.Footprint.StoredBytes()
	if total <= 0 || need == 0 {
		return
	}
	limit := cmp.Or(c.options.FullPercentMax, fullPercentDefault)
	after := 100 * float64(total-free+need) / float64(total)
	switch {
	case after <= limit:
		return
	case c.options.Rehearse > 0 && c.options.FullPercentMax == 0 && need <= free/rehearsalFreeDivisor:
		// A rehearsal takes at most a quarter of the free space. Refusing it on a disk that is nearly full anyway would
		// not help.
		c.note("the storage will be %.0f %% full during the run", after)
		return
	}
	hint := "free some space, use --rehearse, or allow more with --max-full"
	if c.options.Rehearse > 0 {
		hint = "free some space, lower --rehearse-size, or allow more with --max-full"
	}
	c.unfit("space", c.inventory.Name, fmt.Sprintf(
		"the run takes %s%s and %s of %s are free: the storage would be %.0f %% full, more than %.0f %%",
		unit.FormatBytes(need), c.plan.Footprint.Copies(), unit.FormatBytes(free), unit.FormatBytes(total), after, limit), hint)
}

func (c *draft) unfit(resource, subject, message, hint string) {
	c.plan.Unfit = append(c.plan.Unfit, plan.Unfit{Resource: resource, Subject: subject, Message: message, Hint: hint})
}
