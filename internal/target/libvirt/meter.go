package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// meter turns the counters of hosts and domains into averages since the reading before.
type meter struct {
	mu   sync.Mutex
	last map[*node]reading
}

// reading is what a node showed at one moment.
type reading struct {
	at          time.Time
	busy, all   float64 // CPU time of the host, ns
	memory      float64 // in use, percent
	received    map[string]float64
	transmitted map[string]float64 // bytes, by domain
}

func newMeter(nodes []*node) *meter { return &meter{last: make(map[*node]reading, len(nodes))} }

// firstPeriod is between the two readings of the very first sample.
const firstPeriod = 200 * time.Millisecond

// SampleNodes returns averages since the call before, of every node that answers. CPU and memory are those of the whole
// host; libvirt does not count the host's own traffic, so network is the sum over the domains of the node, as they see it.
func (t *Target) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	samples, errs := make([][]target.NodeSample, len(t.nodes)), make([]error, len(t.nodes))
	var all sync.WaitGroup
	for i, n := range t.nodes {
		all.Go(func() { samples[i], errs[i] = t.meter.sample(ctx, n) })
	}
	all.Wait()
	var list []target.NodeSample
	for _, of := range samples {
		list = append(list, of...)
	}
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	return list, nil
}

func (m *meter) sample(ctx context.Context, n *node) ([]target.NodeSample, error) {
	host, err := n.host(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	before, known := m.last[n]
	m.mu.Unlock()
	if !known {
		if before, err = n.read(ctx); err != nil {
			return nil, err
		}
		select {
		case <-time.After(firstPeriod):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	now, err := n.read(ctx)
	if err != nil {
		m.mu.Lock()
		delete(m.last, n) // a host that restarts counts anew
		m.mu.Unlock()
		return nil, err
	}
	m.mu.Lock()
	m.last[n] = now
	m.mu.Unlock()
	return between(n.id, host, before, now), nil
}

func between(id string, host hostFacts, before, now reading) []target.NodeSample {
	var samples []target.NodeSample
	add := func(metric string, value float64, unit string) {
		samples = append(samples, target.NodeSample{NodeID: id, Metric: metric, At: now.at, Value: value, UnitSymbol: unit})
	}
	used := 0.0
	if all := now.all - before.all; all > 0 && now.busy >= before.busy {
		used = min(1, (now.busy-before.busy)/all)
	}
	seconds := now.at.Sub(before.at).Seconds()
	add("CpuUsage.Avg.Percent", 100*used, "%")
	add("CpuUsage.Avg.Megahertz", used*float64(host.cpus)*host.megahertz, "MHz")
	add("MemUsage.Avg.Percent", now.memory, "%")
	add("NetReceived.Avg.KilobytesPerSecond", grown(before.received, now.received)/seconds/1024, "KiB/s")
	add("NetTransmitted.Avg.KilobytesPerSecond", grown(before.transmitted, now.transmitted)/seconds/1024, "KiB/s")
	return samples
}

// grown adds up by how much counters rose. A domain that was not there before, or that counts anew, adds what it counted.
func grown(before, now map[string]float64) float64 {
	var total float64
	for name, value := range now {
		if old := before[name]; old <= value {
			value -= old
		}
		total += value
	}
	return total
}

func (n *node) read(ctx context.Context) (reading, error) {
	cpu, err := n.query(ctx, "nodecpustats")
	if err != nil {
		return reading{}, err
	}
	memory, err := n.query(ctx, "nodememstats")
	if err != nil {
		return reading{}, err
	}
	domains, err := n.query(ctx, "domstats", "--interface", "--list-running")
	if err != nil {
		return reading{}, err
	}
	r, err := parseReading(cpu, memory, domains)
	if err != nil {
		return r, fmt.Errorf("node %q: %w", n.id, err)
	}
	r.at = time.Now()
	return r, nil
}

func parseReading(cpu, memory, domains []byte) (reading, error) {
	r := reading{received: map[string]float64{}, transmitted: map[string]float64{}}
	times := parsePairs(cpu)
	idle := quantity(times["idle"]) + quantity(times["iowait"])
	for _, name := range []string{"user", "system", "intr"} {
		r.busy += quantity(times[name])
	}
	if r.all = r.busy + idle; r.all <= 0 {
		return r, errors.New("read CPU time: there is none")
	}
	sizes := parsePairs(memory)
	total := quantity(sizes["total"])
	if total <= 0 {
		return r, errors.New("read memory: there is none")
	}
	free := quantity(sizes["free"]) + quantity(sizes["buffers"]) + quantity(sizes["cached"])
	r.memory = max(0, 100*(1-free/total))
	list, err := parseStats(domains)
	if err != nil {
		return r, err
	}
	for _, s := range list {
		r.received[s.domain] += s.sum("net", "rx.bytes")
		r.transmitted[s.domain] += s.sum("net", "tx.bytes")
	}
	return r, nil
}
