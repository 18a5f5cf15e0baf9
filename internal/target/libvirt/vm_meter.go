package libvirt

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// vmMeter turns the counters that hosts keep of our domains into averages.
//
//	virsh list, domstats ──▶ stats by UUID ──▶ identity: whose it is, from its metadata ──▶ counters ──▶ averages
//
// Names are not trusted: libvirt's statistics name a domain by nothing else, and so the same call lists which name has
// which UUID.
type vmMeter struct {
	mu    sync.Mutex
	known map[string]identity // by UUID, strangers' too; what a domain says of itself never changes
	last  map[string]standing // by UUID; those that ran at the last look
}

// identity is what the metadata of a domain say.
type identity struct {
	mark, name, group string
}

// identitiesMax bounds what is remembered of domains that come and go, which are not ours: then all are looked at anew.
const identitiesMax = 20_000

// standing is where a VM's counters stood when they were last taken for an average.
type standing struct {
	node     *node
	counters map[string]counted
}

type counted struct {
	value float64
	at    moment
}

// moment is when something was read: somewhere in the time that the call took.
type moment struct {
	middle time.Time
	within time.Duration // to both sides
}

// sharp is how many times longer a stretch is than the doubt about its two ends, at least: the host may have read its counters at
// any moment of a call, and on a busy machine calls take as long as there is between two of them. A shorter stretch is made longer
// by leaving out its second end.
const sharp = 4

func sinceMoment(before, now moment) (seconds float64, ok bool) {
	d := now.middle.Sub(before.middle)
	return d.Seconds(), d >= firstPeriod && d >= sharp*(before.within+now.within)
}

func newVMMeter() *vmMeter {
	return &vmMeter{known: map[string]identity{}, last: map[string]standing{}}
}

// SampleVMs returns the samples of SampleNodes, and those of the VMs with the tag that run, from the same look at each node.
func (t *Target) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := errors.Join(tag.Check(), t.usable(ctx)); err != nil {
		return nil, nil, err
	}
	readings, nodes, err := t.sampleNodes(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	var all sync.WaitGroup
	for i, n := range t.nodes {
		if readings[i] != nil {
			all.Go(func() { t.vmMeter.identify(ctx, n, readings[i]) })
		}
	}
	all.Wait()
	return nodes, t.vmMeter.sample(t.nodes, readings, tag.Mark()), nil
}

// identify learns whose the domains of a reading are. Those that went meanwhile, or that the node does not tell, are asked about again
// the next time, if there is one.
func (m *vmMeter) identify(ctx context.Context, n *node, r *reading) {
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
	for part := range slices.Chunk(unknown, sightsPerCall) {
		found, _ := n.describe(ctx, part, silentLimit)
		m.mu.Lock()
		for _, s := range found {
			vm := s.record().VM
			one := identity{mark: s.mark(), name: vm.Name, group: vm.Group}
			if vmID(one.mark, one.name) != s.UUID {
				one = identity{} // it has the mark of a VM that it is not
			}
			m.known[s.UUID] = one
		}
		m.mu.Unlock()
	}
}

// sample returns what VMs with the mark did since the last time. A VM that two nodes show moves from one to the other, and is
// left out until it has.
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
	for id, s := range m.last {
		if i := slices.Index(nodes, s.node); shown[id] == 0 || i < 0 || readings[i] == nil {
			delete(m.last, id) // it has no power, or nobody can tell
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

// one returns the samples of one VM and remembers where it stands.
func (m *vmMeter) one(id string, n *node, r *reading) []target.VMSample {
	s, one := r.domains[id], m.known[id]
	now := countersOf(s)
	was := m.last[id]
	if was.node != n || fell(was.counters, now) {
		was = standing{node: n, counters: map[string]counted{}} // it counts anew
	}
	rates := map[string]float64{} // per second
	grew := map[string]float64{}
	for name, value := range now {
		before, ok := was.counters[name]
		if ok {
			seconds, long := sinceMoment(before.at, r.took)
			if !long {
				continue
			}
			grew[name] = value - before.value
			rates[name] = grew[name] / seconds
		}
		was.counters[name] = counted{value, r.took}
	}
	m.last[id] = was
	var samples []target.VMSample
	for _, metric := range target.VMMetrics() {
		if value, ok := vmValue(metric, s, rates, grew); ok {
			samples = append(samples, target.VMSample{
				VM: one.name, Group: one.group, NodeID: n.id, Metric: metric, At: r.took.middle, Value: value,
			})
		}
	}
	return samples
}

// fell tells whether a counter is less than it was. Then all have begun anew, with the emulator whose they are.
func fell(before map[string]counted, now map[string]float64) bool {
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

// countersOf reads what a domain shows. Of one that is busy with something else, libvirt leaves out what it would have to wait for.
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

// vmStats are the calls whose output parseVMs reads. Without --nowait one domain that is busy would keep all others waiting.
const vmStats = "list --uuid --name; domstats --nowait --cpu-total --vcpu --balloon --interface --block --list-running"

// parseVMs reads the output of vmStats: all domains that run, and by their UUID those whose name says for certain which they are.
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
		if !ok || !idText.MatchString(id) {
			continue
		}
		if shown[name] == 0 {
			name = strings.TrimRight(name, " ") // some versions fill the column
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
