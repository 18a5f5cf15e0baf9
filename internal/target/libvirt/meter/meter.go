// Package meter reads the utilization of hosts and VMs from libvirt. It converts counters into averages since the
// previous reading and does not interpret them.
//
//	virsh nodecpustats, nodememstats, domstats ──▶ reading ──▶ averages of the node (meter.go) and of our VMs (vms.go)
package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/wait"
)

// Meter reads all hosts of a target. It is a target.VMMeter.
type Meter struct {
	nodes []*node
	vms   vmMeter

	background context.Context // ends with the target; kept because it outlives every call
	end        context.CancelFunc
	probes     sync.WaitGroup
}

// node is one host and its last reading.
type node struct {
	*domain.Client

	mu   sync.Mutex
	last *reading
	// usual is how long the last reading took; 0: there was none.
	usual time.Duration
	// silent says why the node did not answer the last time. Until it answers again it is probed in the background, so that
	// readings of the others are not delayed by a host that is off.
	silent  error
	probing bool
	closed  bool
}

// reading is what a node showed at one moment.
type reading struct {
	at          time.Time
	busy, all   float64 // CPU time of the host, ns
	memory      float64 // in use, percent
	received    map[string]float64
	transmitted map[string]float64 // bytes, by domain
	// Of a reading of VMs:
	domains map[string]stats // by UUID
	took    moment
}

// New returns the meter of hosts. It reads nothing yet.
func New(hosts []*domain.Client) *Meter {
	m := &Meter{vms: vmMeter{known: map[string]identity{}, last: map[string]counters{}}}
	for _, h := range hosts {
		m.nodes = append(m.nodes, &node{Client: h})
	}
	m.background, m.end = context.WithCancel(context.Background())
	return m
}

// Close ends the probes in the background.
func (m *Meter) Close() {
	for _, n := range m.nodes {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
	}
	m.end()
	m.probes.Wait()
}

// SampleNodes returns averages since the call before, of every node that answers. CPU and memory are those of the whole
// host; libvirt does not count the host's own traffic, so network is the sum over the domains of the node, as they see it.
func (m *Meter) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	_, list, err := m.sampleNodes(ctx, false)
	return list, err
}

// sampleNodes reads all nodes at once, with or without their VMs, and returns the reading of each node that answered.
func (m *Meter) sampleNodes(ctx context.Context, vms bool) ([]*reading, []target.NodeSample, error) {
	switch {
	case m.background.Err() != nil:
		return nil, nil, virsh.ErrClosed
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	}
	readings, samples := make([]*reading, len(m.nodes)), make([][]target.NodeSample, len(m.nodes))
	errs := make([]error, len(m.nodes))
	var all sync.WaitGroup
	for i, n := range m.nodes {
		all.Go(func() { readings[i], samples[i], errs[i] = m.read(ctx, n, vms) })
	}
	all.Wait()
	list := slices.Concat(samples...)
	if len(list) == 0 {
		return nil, nil, errors.Join(errs...)
	}
	return readings, list, nil
}

// A node has ten times as long to answer as it usually takes, and readingMin at least.
const (
	readingMin   = 5 * time.Second
	readingTimes = 10
)

// read reads a node that answered the last time, and probes one that did not.
func (m *Meter) read(ctx context.Context, n *node, vms bool) (*reading, []target.NodeSample, error) {
	n.mu.Lock()
	silent, limit := n.silent, virsh.QueryLimit
	if n.usual > 0 {
		limit = min(limit, max(readingMin, readingTimes*n.usual))
	}
	if silent != nil && !n.probing && !n.closed {
		n.probing = true
		m.probes.Go(func() {
			bounded, cancel := context.WithTimeout(m.background, virsh.QueryLimit)
			defer cancel()
			_, _, err := n.sample(bounded, false)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.probing = false
			if err == nil {
				n.silent = nil
			}
		})
	}
	n.mu.Unlock()
	if silent != nil {
		return nil, nil, silent
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, virsh.ErrTimedOut)
	defer cancel()
	began := time.Now()
	r, samples, err := n.sample(bounded, vms)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		n.usual = max(1, time.Since(began))
	case ctx.Err() == nil:
		n.silent = err
	}
	return r, samples, err
}

// firstPeriod is between the two readings of the very first sample.
const firstPeriod = 200 * time.Millisecond

func (n *node) sample(ctx context.Context, vms bool) (*reading, []target.NodeSample, error) {
	host, err := n.Host.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	before := n.last
	n.mu.Unlock()
	if before == nil {
		if before, err = n.read(ctx, false); err != nil {
			return nil, nil, err
		}
		if err := wait.For(ctx, firstPeriod); err != nil {
			return nil, nil, err
		}
	}
	now, err := n.read(ctx, vms)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.last = nil // the counters of a host that restarts begin at zero
		return nil, nil, err
	}
	kept := *now
	kept.domains = nil // averages of VMs have their own counters
	n.last = &kept
	return now, between(n.Host.ID, host, before, now), nil
}

func between(id string, host virsh.Facts, before, now *reading) []target.NodeSample {
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
	add("CpuUsage.Avg.Megahertz", used*float64(host.CPUs)*host.Megahertz, "MHz")
	add("MemUsage.Avg.Percent", now.memory, "%")
	add("NetReceived.Avg.KilobytesPerSecond", grown(before.received, now.received)/seconds/1024, "KiB/s")
	add("NetTransmitted.Avg.KilobytesPerSecond", grown(before.transmitted, now.transmitted)/seconds/1024, "KiB/s")
	return samples
}

// grown adds up the increase of counters. A domain that is new, or whose counters restarted, adds its whole count.
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

// read makes one reading. With VMs it asks for more in the same call.
func (n *node) read(ctx context.Context, vms bool) (*reading, error) {
	cpu, err := n.Host.Query(ctx, "nodecpustats")
	if err != nil {
		return nil, err
	}
	memory, err := n.Host.Query(ctx, "nodememstats")
	if err != nil {
		return nil, err
	}
	r, err := parseReading(cpu, memory)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.Host.ID, err)
	}
	var text []byte
	if vms {
		text, r.took, err = n.readVMs(ctx)
	} else {
		text, err = n.Host.Query(ctx, "domstats", "--interface", "--list-running")
	}
	if err != nil {
		return nil, err
	}
	var list []stats
	var byID map[string]stats
	if vms {
		list, byID, err = parseVMs(text)
	} else {
		list, err = parseStats(text)
	}
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.Host.ID, err)
	}
	r.domains = byID
	r.at = time.Now()
	for _, s := range list {
		r.received[s.domain] += s.sum("net", "rx.bytes")
		r.transmitted[s.domain] += s.sum("net", "tx.bytes")
	}
	return r, nil
}

func (n *node) readVMs(ctx context.Context) (text []byte, took moment, err error) {
	err = virsh.Retry(ctx, func(ctx context.Context) error {
		began := time.Now()
		text, err = n.Host.Run(ctx, virsh.Call{Args: []string{vmStats}, Limit: virsh.QueryLimit})
		half := time.Since(began) / 2
		took = moment{middle: began.Add(half), within: half}
		return err
	}, nil)
	return text, took, err
}

func parseReading(cpu, memory []byte) (*reading, error) {
	r := &reading{received: map[string]float64{}, transmitted: map[string]float64{}}
	times := virsh.ParsePairs(cpu)
	idle := virsh.Quantity(times["idle"]) + virsh.Quantity(times["iowait"])
	for _, name := range []string{"user", "system", "intr"} {
		r.busy += virsh.Quantity(times[name])
	}
	if r.all = r.busy + idle; r.all <= 0 {
		return r, errors.New("read CPU time: no value")
	}
	sizes := virsh.ParsePairs(memory)
	total := virsh.Quantity(sizes["total"])
	if total <= 0 {
		return r, errors.New("read memory: no value")
	}
	free := virsh.Quantity(sizes["free"]) + virsh.Quantity(sizes["buffers"]) + virsh.Quantity(sizes["cached"])
	r.memory = max(0, 100*(1-free/total))
	return r, nil
}
