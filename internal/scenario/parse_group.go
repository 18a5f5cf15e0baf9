package scenario

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
	"github.com/braggdev/bragg/internal/unit"
)

var (
	groupKeys = []string{"template", "template_type", "vcpus", "cpu_sockets", "cpu_threads", "ram_mb", "data_disks", "nodes", "count_per_node",
		"count_per_cluster", "exporter_ports"}
	diskKeys      = []string{"count", "size"}
	templateTypes = []string{"DISK", "OVF"}
)

// Bounds and defaults of a group. The defaults and groupVMsMax are X-Ray's; the others only catch typing errors.
const (
	vcpusDefault  = 2
	ramMiBDefault = 2048
	vcpusMax      = 4096
	cpuThreadsMax = 8 // per core, more than any processor has
	ramMiBMax     = 64 << 20
	disksMax      = 256
	diskGiBMax    = 1 << 20
	groupVMsMax   = 10_000
)

func (p *parser) groups(f fields) {
	for _, e := range p.section(f, "vms") {
		p.checkName(e.name, "the VM group", groupNameMax)
		p.sc.Groups = append(p.sc.Groups, p.group(e))
	}
}

func (p *parser) group(e entry) Group {
	f := p.mapping(e.value, e.name, fmt.Sprintf("VM group %q", e.name.Text), groupKeys)
	f.require("template")
	g := Group{
		Name:         e.name.Text,
		Template:     f.text("template"),
		TemplateType: f.oneOf("template_type", templateTypes),
		VCPUs:        int(f.integer("vcpus", 1, vcpusMax, vcpusDefault)),
		RAMBytes:     f.integer("ram_mb", 1, ramMiBMax, ramMiBDefault) * unit.MiB,
		PerNode:      int(f.integer("count_per_node", 1, groupVMsMax, 0)),
		PerCluster:   int(f.integer("count_per_cluster", 1, groupVMsMax, 0)),
		Pos:          p.pos(e.name),
	}
	gp := groupParser{f, &g}
	gp.disks()
	gp.placement()
	gp.topology()
	for _, n := range f.list("exporter_ports") {
		port, ok := yamltree.AsInt(n)
		if !ok || port < 1 || port > 65535 {
			p.report(n, "out-of-range", "", "%s: %s is not a port; ports are from 1 to 65535", f.what, quoteNode(n))
			continue
		}
		g.ExporterPorts = append(g.ExporterPorts, int(port))
	}
	return g
}

// groupParser reads the parts of one group that depend on each other.
type groupParser struct {
	fields
	*Group
}

// disks reads count and size, or a list of sizes in GiB that must be equal, as X-Ray requires.
func (g groupParser) disks() {
	n, ok := g.get("data_disks")
	switch {
	case !ok:
	case n.Kind == yamltree.Mapping:
		d := g.mapping(n, g.key["data_disks"], "data_disks of "+g.what, diskKeys)
		d.require(diskKeys...)
		g.DiskCount = int(d.integer("count", 0, disksMax, 0))
		g.DiskBytes = d.integer("size", 1, diskGiBMax, 0) * unit.GiB
	case n.Kind == yamltree.Sequence:
		for _, item := range n.Items {
			size, ok := yamltree.AsInt(item)
			switch {
			case !ok || size < 1 || size > diskGiBMax:
				g.report(item, "wrong-type", "", "%s: the disk size %s must be an integer in GiB", g.what, quoteNode(item))
			case g.DiskBytes != 0 && g.DiskBytes != size*unit.GiB:
				g.report(item, "unequal-disks", "", "%s: all data disks must have the same size; the first has %d GiB",
					g.what, g.DiskBytes/unit.GiB)
			default:
				g.DiskBytes = size * unit.GiB
			}
		}
		g.DiskCount = len(n.Items)
	default:
		g.report(n, "wrong-shape", "write count: and size: below it",
			"%s: data_disks is %s where count and size are wanted", g.what, quoteNode(n))
	}
}

// topology reads how the CPUs are divided into sockets, cores and threads. It has to have as many CPUs as the VM.
func (g groupParser) topology() {
	sockets, threads := int(g.integer("cpu_sockets", 1, vcpusMax, 0)), int(g.integer("cpu_threads", 1, cpuThreadsMax, 0))
	if sockets == 0 && threads == 0 {
		return
	}
	key := g.key["cpu_sockets"]
	if sockets == 0 {
		sockets, key = 1, g.key["cpu_threads"]
	}
	threads = max(threads, 1)
	if g.VCPUs%(sockets*threads) != 0 {
		g.report(key, "cpu-topology", "vcpus must be a multiple of cpu_sockets times cpu_threads",
			"%s: %d vCPUs cannot be divided into %d sockets with %d threads per core", g.what, g.VCPUs, sockets, threads)
		return
	}
	g.CPUSockets, g.CPUThreads = sockets, threads
}

// placement reads the node slice and the counts.
func (g groupParser) placement() {
	if n, ok := g.nodes(); ok {
		g.Nodes = g.text("nodes")
		if _, err := ParseNodes(g.Nodes); err != nil && n.Kind == yamltree.Scalar {
			g.report(n, "bad-nodes", `write all, an index, or a slice such as ":n-1"`, "%s: %v", g.what, err)
			g.Nodes = ""
		}
	}
	if n, both := g.key["count_per_cluster"]; both && g.PerNode != 0 && g.PerCluster != 0 {
		g.report(n, "count-twice", "", "%s: count_per_cluster and count_per_node exclude each other", g.what)
	}
}

// nodes returns a node slice, and reports an empty one, such as from a variable without a value. Only a missing key means all
// nodes: a step that cuts the power must not take a mistake for "all".
func (f fields) nodes() (yamltree.Node, bool) {
	n, ok := f.get("nodes")
	if ok && n.Kind == yamltree.Scalar && strings.TrimSpace(n.Text) == "" {
		f.report(n, "bad-nodes", `write all, an index, or a slice such as ":n-1"`, "%s: nodes is empty", f.what)
	}
	return n, ok
}
