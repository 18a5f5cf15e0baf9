package meter

import (
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// counts are the counters of the readings before, by group and metric.
type counts map[string]map[string]reading

// gapMax is how long ago the reading before may be: an average over more, while a node did not answer, is not one of this time.
const gapMax = 10 * time.Minute

// firstLeast is how long the first average of a counter must be. A kubelet reads a new group as soon as it finds it, and states that time late
// while it is busy with the start of the pod: an average over the few seconds until its next reading can be far off.
const firstLeast = 6 * time.Second

// rate returns the growth of a counter per second since the reading before; false: it has not been read since, there was none, it
// restarted, or the first two are too close to each other.
func (c counts) rate(of, metric string, now reading) (perSecond float64, ok bool) {
	grown, seconds, ok := c.growth(of, metric, now)
	return grown / seconds, ok
}

func (c counts) growth(of, metric string, now reading) (grown, seconds float64, ok bool) {
	before, known := c[of][metric]
	if known && !now.at.After(before.at) {
		return 0, 1, false
	}
	if c[of] == nil {
		c[of] = map[string]reading{}
	}
	gap := now.at.Sub(before.at)
	now.again = known && now.value >= before.value
	c[of][metric] = now
	if !now.again || gap > gapMax || !before.again && gap < firstLeast {
		return 0, 1, false
	}
	return now.value - before.value, gap.Seconds(), true
}

// fresh reports whether a value that is not a counter was read since the last time.
func (c counts) fresh(of, metric string, now reading) bool {
	before, known := c[of][metric]
	if known && !now.at.After(before.at) {
		return false
	}
	if c[of] == nil {
		c[of] = map[string]reading{}
	}
	c[of][metric] = now
	return true
}

// Names of X-Ray.
const (
	cpuPercent    = "CpuUsage.Avg.Percent"
	memoryPercent = "MemUsage.Avg.Percent"
	netReceived   = "NetReceived.Avg.KilobytesPerSecond"
	netSent       = "NetTransmitted.Avg.KilobytesPerSecond"

	kilobyte = 1024
)

// node returns what is new of the machine of a node. A cluster does not know the clock rate of processors, so there are no megahertz.
func (c counts) node(name string, s scrape, ahead time.Duration) []target.NodeSample {
	g := s.groups[machine]
	if g == nil {
		return nil
	}
	var samples []target.NodeSample
	of := "node " + name
	add := func(metric string, at time.Time, value float64, unit string) {
		samples = append(samples, target.NodeSample{NodeID: name, Metric: metric, At: at.Add(-ahead), Value: value, UnitSymbol: unit})
	}
	if r, ok := g.values[cpuSeconds]; ok && s.cores > 0 {
		if used, ok := c.rate(of, cpuSeconds, r); ok {
			add(cpuPercent, r.at, min(100, 100*used/s.cores), "%")
		}
	}
	if r, ok := g.values[workingSet]; ok && s.memory > 0 && c.fresh(of, workingSet, r) {
		add(memoryPercent, r.at, 100*r.value/s.memory, "%")
	}
	for _, one := range []struct{ from, metric string }{{received, netReceived}, {transmitted, netSent}} {
		if r, ok := sum(g.devices[one.from], physical); ok {
			if rate, ok := c.rate(of, one.from, r); ok {
				add(one.metric, r.at, rate/kilobyte, "KiB/s")
			}
		}
	}
	return samples
}

// sum adds up the values of devices that count.
func sum(devices map[string]reading, counts func(name string) bool) (total reading, ok bool) {
	for name, r := range devices {
		if counts(name) {
			total.value += r.value
			if r.at.After(total.at) {
				total.at = r.at
			}
			ok = true
		}
	}
	return total, ok
}

// virtual are the begins of names of interfaces whose traffic passes another one too, or stays on the node.
var virtual = []string{
	"lo", "veth", "docker", "cni", "cali", "cilium", "lxc", "flannel", "vxlan", "geneve", "genev_", "tunl", "ip6tnl", "sit", "gre", "erspan", "kube-",
	"dummy", "nodelocaldns", "br-", "br0", "virbr", "ovs", "ovn", "weave", "antrea", "tap", "tun", "wg", "ifb", "bond", "team",
}

func physical(name string) bool {
	for _, prefix := range virtual {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return !strings.ContainsAny(name, ".@") // of a VLAN
}

// inPod are interfaces of a pod, without its loopback.
func inPod(name string) bool { return name != "lo" }

// vms returns what is new of pods.
func (c counts) vms(vms []VM, s scrape, ahead time.Duration) []target.VMSample {
	byUID := map[string]map[string]*group{}
	for path, g := range s.groups {
		if uid, own := podOf(path); uid != "" {
			g.ofPod = own
			if byUID[uid] == nil {
				byUID[uid] = map[string]*group{}
			}
			byUID[uid][path] = g
		}
	}
	var samples []target.VMSample
	for _, vm := range vms {
		p := podGroups{vm: vm, all: byUID[vm.UID], scrape: s, counts: c}
		if len(p.all) > 0 {
			samples = append(samples, p.samples(ahead)...)
		}
	}
	return samples
}

// podGroups are the control groups of one pod: its own, those of its containers, and that of its network.
type podGroups struct {
	vm     VM
	all    map[string]*group
	scrape scrape
	counts counts
}

// value is that of the pod's own group, which includes all others; without it, their sum.
func (p podGroups) value(of func(g *group) (reading, bool)) (total reading, ok bool) {
	for _, g := range p.all {
		if r, has := of(g); has && g.ofPod {
			return r, true
		}
	}
	for _, g := range p.all {
		if r, has := of(g); has {
			total.value += r.value
			if r.at.After(total.at) {
				total.at = r.at
			}
			ok = true
		}
	}
	return total, ok
}

// ofDisks are the metrics of I/O, and what they are made of.
var ofDisks = []struct {
	metric target.VMMetric
	from   string
}{
	{target.VMReads, diskReads}, {target.VMWrites, diskWrites}, {target.VMReadBytes, diskReadBytes}, {target.VMWritten, diskWritten},
}

func (p podGroups) samples(ahead time.Duration) []target.VMSample {
	var samples []target.VMSample
	add := func(metric target.VMMetric, at time.Time, value float64) {
		samples = append(samples, target.VMSample{
			VM: p.vm.Name, Group: p.vm.Group, NodeID: p.vm.Node, Metric: metric, At: at.Add(-ahead), Value: value,
		})
	}
	of := "pod " + p.vm.UID
	cpu, ok := p.value(func(g *group) (reading, bool) { r, ok := g.values[cpuSeconds]; return r, ok })
	if ok {
		if used, ok := p.counts.rate(of, cpuSeconds, cpu); ok {
			add(target.VMCPUUsage, cpu.at, used/float64(max(1, p.vm.VCPUs)))
		}
	}
	if share, at, ok := p.throttled(); ok {
		add(target.VMCPUThrottled, at, share)
	}
	memory, ok := p.value(func(g *group) (reading, bool) { r, ok := g.values[workingSet]; return r, ok })
	if ok && p.counts.fresh(of, workingSet, memory) {
		add(target.VMMemory, memory.at, memory.value)
	}
	if p.scrape.diskIO && !cpu.at.IsZero() {
		for _, one := range ofDisks {
			r, used := p.value(func(g *group) (reading, bool) { return sum(g.devices[one.from], uppermost(g.devices[one.from])) })
			if !used {
				r = reading{at: cpu.at} // its group lists no device: no I/O so far
			}
			if rate, ok := p.counts.rate(of, one.from, r); ok {
				add(one.metric, r.at, rate)
			}
		}
	}
	for _, one := range []struct {
		metric target.VMMetric
		from   string
	}{{target.VMReceived, received}, {target.VMTransmitted, transmitted}} {
		if r, ok := p.value(func(g *group) (reading, bool) { return sum(g.devices[one.from], inPod) }); ok {
			if rate, ok := p.counts.rate(of, one.from, r); ok {
				add(one.metric, r.at, rate)
			}
		}
	}
	return samples
}

// throttled returns the share of periods of the CPU limit in which a group of the pod was throttled: of the group that was throttled most.
func (p podGroups) throttled() (share float64, at time.Time, ok bool) {
	for path, g := range p.all {
		all, has := g.values[cfsPeriods]
		held, and := g.values[throttledPeriods]
		if !has || !and {
			continue
		}
		// Both counters have one time. A group that did not run has no periods: it was not throttled.
		periods, _, one := p.counts.growth(path, cfsPeriods, all)
		times, _, two := p.counts.growth(path, throttledPeriods, held)
		if !one || !two {
			continue
		}
		if periods > 0 {
			share = max(share, min(1, times/periods))
		}
		if all.at.After(at) {
			at = all.at
		}
		ok = true
	}
	return share, at, ok
}

// uppermost selects the devices of a group that are not below others: the kernel counts a request once for the device mapper (LVM,
// multipath, encryption) and again for the device below.
func uppermost(devices map[string]reading) func(name string) bool {
	mapped := func(name string) bool {
		return strings.HasPrefix(strings.TrimPrefix(name, "/dev/"), "dm-") || strings.Contains(name, "/mapper/")
	}
	some := false
	for name := range devices {
		some = some || mapped(name)
	}
	return func(name string) bool { return !some || mapped(name) }
}
