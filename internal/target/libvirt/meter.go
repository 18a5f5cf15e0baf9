package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// meter turns the counters of hosts and domains into averages since the reading before.
type meter struct {
	mu   sync.Mutex
	last map[*node]reading
	// usual is how long the last reading of a node took.
	usual map[*node]time.Duration
	// silent says why a node did not answer the last time. It is asked beside the calls until it does, so that they do not wait for a
	// host that is off just when the others are looked at most.
	silent map[*node]error
	asked  map[*node]bool // beside the calls, at this moment

	beside context.Context // ends with the target; kept because it outlives every call
	end    context.CancelFunc
	work   sync.WaitGroup
}

// reading is what a node showed at one moment.
type reading struct {
	at          time.Time
	busy, all   float64 // CPU time of the host, ns
	memory      float64 // in use, percent
	received    map[string]float64
	transmitted map[string]float64 // bytes, by domain
	// Of a reading that is of VMs too:
	domains map[string]stats // by UUID
	took    moment
}

func newMeter() *meter {
	m := &meter{last: map[*node]reading{}, usual: map[*node]time.Duration{}, silent: map[*node]error{}, asked: map[*node]bool{}}
	m.beside, m.end = context.WithCancel(context.Background())
	return m
}

// close ends what goes on beside the calls.
func (m *meter) close() {
	m.mu.Lock()
	m.end() // nobody begins a look after this
	m.mu.Unlock()
	m.work.Wait()
}

// A node has ten times as long to answer as it usually takes, and meterLimit at least.
const (
	meterLimit    = 5 * time.Second
	meterPatience = 10
)

// look reads a node that answered the last time, and asks for one that did not beside the calls.
func (m *meter) look(ctx context.Context, n *node, vms bool) (*reading, []target.NodeSample, error) {
	m.mu.Lock()
	why, limit := m.silent[n], queryLimit
	if usual, known := m.usual[n]; known {
		limit = min(limit, max(meterLimit, meterPatience*usual))
	}
	if why != nil && !m.asked[n] && m.beside.Err() == nil {
		m.asked[n] = true
		m.work.Go(func() {
			bounded, cancel := context.WithTimeout(m.beside, queryLimit)
			defer cancel()
			_, _, err := m.sample(bounded, n, false)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.asked[n] = false
			if err == nil {
				delete(m.silent, n)
			}
		})
	}
	m.mu.Unlock()
	if why != nil {
		return nil, nil, why
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errTimedOut)
	defer cancel()
	began := time.Now()
	r, samples, err := m.sample(bounded, n, vms)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.usual[n] = time.Since(began)
	case ctx.Err() == nil:
		m.silent[n] = err
	}
	return r, samples, err
}

// firstPeriod is between the two readings of the very first sample.
const firstPeriod = 200 * time.Millisecond

// SampleNodes returns averages since the call before, of every node that answers. CPU and memory are those of the whole
// host; libvirt does not count the host's own traffic, so network is the sum over the domains of the node, as they see it.
func (t *Target) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	_, list, err := t.sampleNodes(ctx, false)
	return list, err
}

// sampleNodes reads all nodes at once, their VMs too or not, and returns the reading of each node that answered.
func (t *Target) sampleNodes(ctx context.Context, vms bool) ([]*reading, []target.NodeSample, error) {
	readings, samples := make([]*reading, len(t.nodes)), make([][]target.NodeSample, len(t.nodes))
	errs := make([]error, len(t.nodes))
	var all sync.WaitGroup
	for i, n := range t.nodes {
		all.Go(func() { readings[i], samples[i], errs[i] = t.meter.look(ctx, n, vms) })
	}
	all.Wait()
	list := slices.Concat(samples...)
	if len(list) == 0 {
		return nil, nil, errors.Join(errs...)
	}
	return readings, list, nil
}

func (m *meter) sample(ctx context.Context, n *node, vms bool) (*reading, []target.NodeSample, error) {
	host, err := n.host(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	before, known := m.last[n]
	m.mu.Unlock()
	if !known {
		if before, err = n.read(ctx, false); err != nil {
			return nil, nil, err
		}
		select {
		case <-time.After(firstPeriod):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	now, err := n.read(ctx, vms)
	if err != nil {
		m.mu.Lock()
		delete(m.last, n) // a host that restarts counts anew
		m.mu.Unlock()
		return nil, nil, err
	}
	list := between(n.id, host, before, now)
	reached := now
	reached.domains = nil // the other meter has what it needs of them
	m.mu.Lock()
	m.last[n] = reached
	m.mu.Unlock()
	return &now, list, nil
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

// read makes one reading. One that is of VMs too asks for more with the same call.
func (n *node) read(ctx context.Context, vms bool) (reading, error) {
	cpu, err := n.query(ctx, "nodecpustats")
	if err != nil {
		return reading{}, err
	}
	memory, err := n.query(ctx, "nodememstats")
	if err != nil {
		return reading{}, err
	}
	r, err := parseHostReading(cpu, memory)
	if err != nil {
		return r, fmt.Errorf("node %q: %w", n.id, err)
	}
	var domains []stats
	if vms {
		domains, err = n.readVMs(ctx, &r)
	} else {
		domains, err = n.readInterfaces(ctx)
	}
	if err != nil {
		return r, err
	}
	r.at = time.Now()
	for _, s := range domains {
		r.received[s.domain] += s.sum("net", "rx.bytes")
		r.transmitted[s.domain] += s.sum("net", "tx.bytes")
	}
	return r, nil
}

func (n *node) readInterfaces(ctx context.Context) ([]stats, error) {
	text, err := n.query(ctx, "domstats", "--interface", "--list-running")
	if err != nil {
		return nil, err
	}
	list, err := parseStats(text)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.id, err)
	}
	return list, nil
}

func (n *node) readVMs(ctx context.Context, r *reading) ([]stats, error) {
	var text []byte
	err := patiently(ctx, func(ctx context.Context) error {
		began := time.Now()
		var err error
		text, err = n.run(ctx, call{args: []string{vmStats}, limit: queryLimit})
		half := time.Since(began) / 2
		r.took = moment{middle: began.Add(half), within: half}
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	list, byID, err := parseVMs(text)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.id, err)
	}
	r.domains = byID
	return list, nil
}

func parseHostReading(cpu, memory []byte) (reading, error) {
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
	return r, nil
}
