package meter

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// vmMeter turns the counters of our domains into averages.
//
//	virsh list, domstats ──▶ stats by UUID ──▶ identity: the owner, from its metadata ──▶ counters ──▶ averages
//
// Names are not trusted. libvirt's statistics have the name of a domain alone, so the same call lists the UUIDs of names.
type vmMeter struct {
	mu    sync.Mutex
	known map[string]identity // by UUID, of foreign domains too; the metadata of a domain never change
	last  map[string]counters // by UUID; of domains that ran at the last reading
}

// identity is what the metadata of a domain say.
type identity struct {
	mark, name, group string
}

// identitiesMax bounds what is kept of foreign domains that come and go: then all are looked up again.
const identitiesMax = 20_000

// counters are those of a VM when they were last taken for an average.
type counters struct {
	node   *node
	values map[string]counted
}

type counted struct {
	value float64
	at    moment
}

// moment is when a value was read: somewhere in the time that the call took.
type moment struct {
	middle time.Time
	within time.Duration // to both sides
}

// sharp is the least ratio of a period to the uncertainty of its two ends: the host may have read its counters at any moment of a
// call, and on a busy machine calls take as long as the pause between them. A shorter period is extended to the next reading.
const sharp = 4

func sinceMoment(before, now moment) (seconds float64, ok bool) {
	d := now.middle.Sub(before.middle)
	return d.Seconds(), d >= firstPeriod && d >= sharp*(before.within+now.within)
}

// SampleVMs returns the samples of SampleNodes, and those of the running VMs with the tag, from the same reading of each node.
func (m *Meter) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	readings, samples, err := m.sampleNodes(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	var all sync.WaitGroup
	for i, n := range m.nodes {
		if readings[i] != nil {
			all.Go(func() { m.vms.identify(ctx, n.Client, readings[i]) })
		}
	}
	all.Wait()
	return samples, m.vms.sample(m.nodes, readings, tag.Mark()), nil
}

// identify learns the owners of the domains of a reading. Domains that are gone by now, or that the host does not describe, are
// looked up again for the next reading that has them.
func (m *vmMeter) identify(ctx context.Context, domains *domain.Client, r *reading) {
	m.mu.Lock()
	if len(m.known) > identitiesMax {
		clear(m.known)
	}
	var unknown []string
	for _, id := range slices.Sorted(maps.Keys(r.domains)) {
		if _, ok := m.known[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	m.mu.Unlock()
	var found []domain.Info
	for part := range slices.Chunk(unknown, domain.DescribeMax) {
		some, _ := domains.Describe(ctx, part, virsh.SilentLimit) // a domain that has just gone must not hide those of other calls
		found = append(found, some...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range found {
		vm := d.Record().VM
		one := identity{mark: d.Mark(), name: vm.Name, group: vm.Group}
		if target.VMID(one.mark, one.name) != d.UUID {
			one = identity{} // its mark was copied from another VM
		}
		m.known[d.UUID] = one
	}
}

// sample returns the averages of VMs with the mark since the last time. A VM on two nodes is migrating, and is left out until it
// is on one.
func (m *vmMeter) sample(nodes []*node, readings []*reading, mark string) []target.VMSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	shown := map[string]int{}
	for _, r := range readings {
		if r != nil {
			for id := range r.domains {
				shown[id]++
			}
		}
	}
	for id, c := range m.last {
		if i := slices.Index(nodes, c.node); shown[id] == 0 || readings[i] == nil {
			delete(m.last, id) // it has no power, or its node does not answer
		}
	}
	var samples []target.VMSample
	for i, r := range readings {
		if r == nil {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(r.domains)) {
			if one := m.known[id]; one.mark == mark && shown[id] == 1 {
				samples = append(samples, m.one(id, nodes[i], r)...)
			}
		}
	}
	return samples
}

// one returns the samples of one VM and keeps its counters.
func (m *vmMeter) one(id string, n *node, r *reading) []target.VMSample {
	s, one := r.domains[id], m.known[id]
	now := countersOf(s)
	last := m.last[id]
	if last.node != n || restarted(last.values, now) {
		last = counters{node: n, values: map[string]counted{}}
	}
	rates := map[string]float64{} // per second
	grew := map[string]float64{}
	for name, value := range now {
		before, ok := last.values[name]
		if ok {
			seconds, long := sinceMoment(before.at, r.took)
			if !long {
				continue
			}
			grew[name] = value - before.value
			rates[name] = grew[name] / seconds
		}
		last.values[name] = counted{value, r.took}
	}
	m.last[id] = last
	var samples []target.VMSample
	for _, metric := range target.VMMetrics() {
		if value, ok := vmValue(metric, s, rates, grew); ok {
			samples = append(samples, target.VMSample{
				VM: one.name, Group: one.group, NodeID: n.Host.ID, Metric: metric, At: r.took.middle, Value: value,
			})
		}
	}
	return samples
}

// restarted reports whether a counter is less than it was. Then all began at zero, with a new emulator.
func restarted(before map[string]counted, now map[string]float64) bool {
	for name, value := range now {
		if value < before[name].value {
			return true
		}
	}
	return false
}

// vmCounters are those of which averages are made, named as target's metrics where they are one to one.
var vmCounters = []struct{ name, kind, value string }{
	{string(target.VMReads), "block", "rd.reqs"}, {string(target.VMWrites), "block", "wr.reqs"},
	{string(target.VMReadBytes), "block", "rd.bytes"}, {string(target.VMWritten), "block", "wr.bytes"},
	{string(target.VMReadTime), "block", "rd.times"}, {string(target.VMWriteTime), "block", "wr.times"},
	{string(target.VMReceived), "net", "rx.bytes"}, {string(target.VMTransmitted), "net", "tx.bytes"},
}

// countersOf reads the counters of a domain. Of a busy one, libvirt leaves out what it would have to wait for.
func countersOf(s stats) map[string]float64 {
	found := map[string]float64{}
	if s.has("cpu.time") {
		found[string(target.VMCPUUsage)] = s.number("cpu.time")
	}
	for _, c := range vmCounters {
		if total, ok := s.sumHad(c.kind+".count", c.kind, c.value); ok {
			found[c.name] = total
		}
	}
	// vcpu.N.wait is left out: kernels count it only with a setting that is off by default, and show 0 otherwise.
	if total, ok := s.sumHad("vcpu.maximum", "vcpu", "delay"); ok {
		found[string(target.VMCPUSteal)] = total
	}
	return found
}

// vmValue returns a metric in its base unit, and whether there is one.
func vmValue(metric target.VMMetric, s stats, rates, grew map[string]float64) (float64, bool) {
	name := string(metric)
	rate, ok := rates[name]
	switch metric {
	case target.VMMemory:
		return s.number("balloon.rss") * 1024, s.has("balloon.rss")
	case target.VMCPUUsage, target.VMCPUSteal:
		cpus := s.number("vcpu.current")
		return rate / 1e9 / max(cpus, 1), ok && cpus > 0
	case target.VMReadTime, target.VMWriteTime:
		requests := grew[string(target.VMReads)]
		if metric == target.VMWriteTime {
			requests = grew[string(target.VMWrites)]
		}
		return grew[name] / max(requests, 1) / 1e9, ok && requests > 0
	}
	return rate, ok
}

// vmStats are the calls whose output parseVMs reads. Without --nowait one busy domain would delay all others.
const vmStats = "list --uuid --name; domstats --nowait --cpu-total --vcpu --balloon --interface --block --list-running"

// parseVMs reads the output of vmStats: all running domains, and by UUID those whose name is unique.
//
//	2373c78c-8b5b-8864-95ab-42187a077144 name
//	Domain: 'name'
//	  cpu.time=1234
func parseVMs(text []byte) (all []stats, byID map[string]stats, err error) {
	list, rest := string(text), ""
	if at := strings.Index("\n"+list, "\nDomain: '"); at >= 0 {
		list, rest = list[:at], list[at:]
	}
	if all, err = parseStats([]byte(rest)); err != nil {
		return nil, nil, err
	}
	shown := map[string]int{}
	for _, s := range all {
		shown[s.domain]++
	}
	ids, ofName, ofID := map[string]string{}, map[string]int{}, map[string]int{}
	for line := range strings.Lines(list) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || !virsh.IsUUID(id) {
			continue
		}
		if shown[name] == 0 {
			name = strings.TrimRight(name, " ") // some versions pad the column
		}
		ids[name] = id
		ofName[name]++
		ofID[id]++
	}
	byID = map[string]stats{}
	for _, s := range all {
		if id, ok := ids[s.domain]; ok && shown[s.domain] == 1 && ofName[s.domain] == 1 && ofID[id] == 1 {
			byID[id] = s
		}
	}
	return all, byID, nil
}
