// Package meter reads the utilization of nodes and of the pods of VMs. It makes averages of counters and does not interpret them.
//
//	Kubelets:   GET nodes/NODE/proxy/metrics/cadvisor, once per node ──▶ scrape (cadvisor.go) ──▶ averages (average.go)
//	MetricsAPI: list pods and nodes of metrics.k8s.io                ──▶ averages that it made  (metricsapi.go)
//
// A kubelet reads the counters of a control group every 10 to 16 s, at a different time for each, and states that time. So a sample is
// an average over that long, it has the kubelet's time, moved to this program's clock, and each is given once. The number of calls
// depends on the number of nodes, never on that of pods. The metrics API has times of the cluster without their fraction of a second: they are
// moved by the offset of the API server's clock.
package meter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

// Way is where the figures are from.
type Way int

const (
	// Kubelets have counters of CPU, throttling, memory, network and, where the kernel counts it for each control group, disk I/O.
	Kubelets Way = iota
	// MetricsAPI is that of metrics-server: CPU and memory, and nothing else.
	MetricsAPI
)

// VM is a VM whose pod runs.
type VM struct {
	Name, Group string
	Node        string // where its pod runs
	Namespace   string
	Pod         string
	UID         string // of the pod: a later one may have the same name
	VCPUs       int
}

// Node is a node that runs.
type Node struct {
	Name        string
	CPUs, Bytes float64 // of its machine, for ways that do not state them; 0: not known
}

// Meter reads figures. Its methods may be called concurrently.
type Meter struct {
	client *api.Client
	way    Way

	listing node // of the metrics API

	mu     sync.Mutex
	nodes  map[string]*node
	counts counts
}

// New makes a meter that has read nothing yet.
func New(c *api.Client, way Way) *Meter {
	return &Meter{client: c, way: way, nodes: map[string]*node{}, counts: counts{}}
}

// node is when a source, such as the kubelet of a node, is read again.
type node struct {
	reading sync.Mutex
	next    time.Time
	silent  error // why it did not answer the last time
}

// Limits of readings. One takes at most 1/readingShare of the time, because a node with a hundred pods answers with megabytes; but a kubelet
// has nothing new more often than every readingPause.
const (
	readingShare = 50
	readingPause = 10 * time.Second
	readingMax   = 5 * time.Second
	silentPause  = 30 * time.Second // until a node that did not answer is read again
	atATime      = 16
)

// Sample returns the averages that are new: of the nodes that answer, and of the VMs on them. It is an error if no node answers.
func (m *Meter) Sample(ctx context.Context, nodes []Node, vms []VM) ([]target.NodeSample, []target.VMSample, error) {
	if m.way == MetricsAPI {
		return m.listed(ctx, nodes, vms)
	}
	on := map[string][]VM{}
	for _, vm := range vms {
		on[vm.Node] = append(on[vm.Node], vm)
	}
	nodeSamples, vmSamples := make([][]target.NodeSample, len(nodes)), make([][]target.VMSample, len(nodes))
	errs := target.EachOf(ctx, len(nodes), atATime, func(i int) (err error) {
		nodeSamples[i], vmSamples[i], err = m.read(ctx, nodes[i].Name, on[nodes[i].Name])
		return err
	})
	if len(nodes) > 0 && !slices.Contains(errs, nil) {
		return nil, nil, errors.Join(errs[:min(len(errs), errorsMax)]...)
	}
	return slices.Concat(nodeSamples...), slices.Concat(vmSamples...), nil
}

// errorsMax bounds how many nodes one error names.
const errorsMax = 3

// read reads a node if it is due.
func (m *Meter) read(ctx context.Context, name string, vms []VM) ([]target.NodeSample, []target.VMSample, error) {
	m.mu.Lock()
	n := m.nodes[name]
	if n == nil {
		n = &node{}
		m.nodes[name] = n
	}
	m.mu.Unlock()
	n.reading.Lock()
	defer n.reading.Unlock()
	if time.Now().Before(n.next) {
		return nil, nil, n.silent
	}
	bounded, cancel := context.WithTimeoutCause(ctx, readingMax, errors.New("the kubelet does not answer"))
	defer cancel()
	began := time.Now()
	text, err := m.client.Once(bounded, "/api/v1/nodes/"+url.PathEscape(name)+"/proxy/metrics/cadvisor")
	took := time.Since(began)
	if err != nil {
		if ctx.Err() == nil { // else it had no time to answer
			n.silent, n.next = fmt.Errorf("read metrics of node %q: %w", name, err), time.Now().Add(silentPause)
		}
		return nil, nil, err
	}
	n.silent, n.next = nil, time.Now().Add(min(readingShare*took, readingPause))
	s := parse(text)
	ahead := time.Duration(0) // of the node's clock
	if !s.now.IsZero() {
		ahead = s.now.Sub(began.Add(took / 2))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts.node(name, s, ahead), m.counts.vms(vms, s, ahead), nil
}
