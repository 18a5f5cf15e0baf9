package session

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// exporters keeps the list of scrape targets: the agent of every VM that answered, and the exporters that the scenario
// expects on VMs. It follows VMs to other nodes.
type exporters struct {
	scraper *metric.Scraper
	ports   map[string][]int // group → exporter_ports
	nodes   []metric.Exporter
	sources *builtin.Feed // nil in tests

	mu   sync.Mutex
	byVM map[string]*scrapedVM
}

type scrapedVM struct {
	group, node string
	network     bool // the agent's own metrics come over its connection
	fetch       func(ctx context.Context) ([]byte, error)
	agent       string   // host:port of the agent's own metrics, may be empty
	addresses   []string // host:port of all, the agent's first
}

// nodeExporterPort is the port of node_exporter, whose metric names agents use too.
const nodeExporterPort = "9100"

// newExporters returns the list with the exporters on nodes that a target file names, and no VM yet.
func newExporters(p *plan.Plan, queries []string, nodes []target.NodeConfig, r *recorder) *exporters {
	x := &exporters{ports: map[string][]int{}, byVM: map[string]*scrapedVM{}}
	for _, g := range p.Groups {
		x.ports[g.Name] = g.ExporterPorts
	}
	x.scraper = &metric.Scraper{Interval: scrapePeriod, Now: r.now, Sink: r.Samples, Keep: metric.Keep(queries)}
	if p.Estimate.Total < shortRun {
		x.scraper.Interval = scrapePeriodShort
	}
	for _, n := range nodes {
		if n.ExporterPort > 0 {
			address := net.JoinHostPort(n.Address, strconv.Itoa(n.ExporterPort))
			x.nodes = append(x.nodes, metric.NodeExporter(address, n.ID, cmp.Or(n.Name, n.ID)))
		}
	}
	x.scraper.List = x.list
	return x
}

// How often exporters are scraped. In a short run a load of three seconds, the shortest of a rehearsal, has a rate too.
const (
	scrapePeriod      = 5 * time.Second
	scrapePeriodShort = time.Second
	shortRun          = 15 * time.Minute
)

// Answered adds the exporters of a VM whose agent answered.
func (x *exporters) Answered(vm target.VM, a pool.Answer) {
	if x.sources != nil {
		x.sources.Placed(vm)
	}
	found := &scrapedVM{group: vm.Group, node: vm.NodeID, network: a.Network, fetch: a.Metrics}
	if !a.Network && a.MetricsAddress != "" {
		found.agent = a.MetricsAddress
		found.addresses = append(found.addresses, a.MetricsAddress)
	}
	for _, port := range x.ports[vm.Group] {
		if len(vm.Addresses) == 0 {
			break
		}
		address := net.JoinHostPort(vm.Addresses[0], strconv.Itoa(port))
		if !slices.Contains(found.addresses, address) {
			found.addresses = append(found.addresses, address)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byVM[vm.Name] = found
}

// placed follows a VM to another node.
func (x *exporters) placed(e interval.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if vm := x.byVM[e.Subject]; vm != nil {
		vm.node = e.Node
	}
}

// list is what is scraped now.
func (x *exporters) list() []metric.Exporter {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := slices.Clone(x.nodes)
	for _, name := range slices.Sorted(maps.Keys(x.byVM)) {
		vm, asked := x.byVM[name], !x.byVM[name].network
		for _, address := range vm.addresses {
			e := metric.VMExporter(address, vm.group, name, vm.node)
			e.Whole = address == vm.agent
			if _, port, _ := net.SplitHostPort(address); vm.network && port == nodeExporterPort {
				// The names of an agent are those of node_exporter: both at once would count everything twice.
				e.Fetch, asked = vm.fetch, true
			}
			list = append(list, e)
		}
		if !asked {
			e := metric.VMExporter("", vm.group, name, vm.node)
			e.Fetch = vm.fetch
			list = append(list, e)
		}
	}
	return list
}
