package planner

import (
	"fmt"
	"syscall"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// Resources of a VM that is a process of this machine. Measured with 100 of them: 6 MiB of private memory when idle and 8
// MiB under a small load, half a millisecond of CPU a second when idle, 4 open files in the controller. The memory figure
// includes room for queued intervals.
const (
	processBytes      = 16 << 20
	processesPerCPU   = 512
	processFiles      = 4
	controllerFiles   = 256 // in addition to those for VMs
	memoryPercentMax  = 90  // the rest is for the machine's own use and the page cache
	oversizeRatioNote = 8
)

// fitProcesses checks a target that overcommits: the CPUs and memory of its VMs are not reserved, but their processes and the
// buffers of their loads take memory. Its nodes share one machine.
func (c fitting) fitProcesses() {
	var cpus int
	var ram int64
	for _, n := range c.inventory.Nodes {
		cpus, ram = max(cpus, n.CPUs), max(ram, n.RAMBytes)
	}
	var vms, vcpus int
	var need, asked int64
	for _, g := range c.plan.Groups {
		vms, vcpus = vms+len(g.VMs), vcpus+len(g.VMs)*g.VCPUs
		need += int64(len(g.VMs)) * (processBytes + c.plan.bufferBytes(g.Name))
		asked += int64(len(g.VMs)) * g.RAMBytes
	}
	name, hint := c.inventory.Name, "choose smaller counts, or --rehearse"
	if limit := cpus * processesPerCPU; cpus > 0 && vms > limit {
		c.unfit("cpu", name, fmt.Sprintf("there are %d VMs, each a process, and at most %d run on its %d CPUs (%d each)", vms, limit,
			cpus, processesPerCPU), hint)
	}
	if limit := ram / 100 * memoryPercentMax; ram > 0 && need > limit {
		c.unfit("ram", name, fmt.Sprintf("the processes of %d VMs and the buffers of their loads take %s of memory, and %s of %s can be used",
			vms, unit.FormatBytes(need), unit.FormatBytes(limit), unit.FormatBytes(ram)), hint+", or lower iodepth, bs or numjobs")
	}
	if files := vms*processFiles + controllerFiles; openFilesMax() > 0 && files > openFilesMax() {
		c.unfit("files", name, fmt.Sprintf("%d VMs need %d open files and %d are allowed", vms, files, openFilesMax()),
			hint+", or raise the limit with ulimit -n")
	}
	if cpus > 0 && vcpus > oversizeRatioNote*cpus {
		c.note("VMs have %d vCPUs together and the machine has %d CPUs: they share them, and numbers show this machine rather than "+
			"such VMs", vcpus, cpus)
	}
	if ram > 0 && asked > oversizeRatioNote*ram {
		c.note("VMs have %s of memory together and the machine has %s: the limit applies, but not all of it is available",
			unit.FormatBytes(asked), unit.FormatBytes(ram))
	}
}

// bufferBytes bounds the buffers of all loads of one VM of a group, if all run at once.
func (p *Plan) bufferBytes(group string) int64 {
	var sum int64
	for _, w := range p.workloads {
		var largest int64
		for _, answer := range []*load.Plan{w.loadPlan, w.fillPlan} {
			if answer != nil && w.scenario.Group == group {
				largest = max(largest, answer.MemoryBytes)
			}
		}
		sum += largest
	}
	return sum
}

// openFilesMax is the limit of open files of this process; 0 if unknown.
func openFilesMax() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
