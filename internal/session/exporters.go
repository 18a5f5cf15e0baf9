package session

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// exporters keeps the list of what is scraped: the agent of every VM that answered, and the exporters that the scenario
// expects on VMs. It follows VMs to other nodes.
type exporters struct {
	scraper *metric.Scraper
	ports   map[string][]int // group → exporter_ports

	mu   sync.Mutex
	byVM map[string]*scrapedVM
}

type scrapedVM struct {
	group, node string
	agent       string   // host:port of the agent's own metrics, may be empty
	addresses   []string // host:port of all, the agent's first
}

func newExporters(plan *run.Plan, queries []string, r *recorder) *exporters {
	x := &exporters{ports: map[string][]int{}, byVM: map[string]*scrapedVM{}}
	for _, g := range plan.Groups {
		x.ports[g.Name] = g.ExporterPorts
	}
	x.scraper = &metric.Scraper{Interval: meterPeriod, Now: r.now, Sink: r.Samples, Keep: metric.Keep(queries)}
	if plan.Estimate.Total < meterShortRun {
		x.scraper.Interval = scrapePeriodShort
	}
	return x
}

// queriesOf lists what the results of a scenario ask of the metric store.
func queriesOf(s *scenario.Scenario) []string {
	var list []string
	for _, r := range s.Results {
		if r.Query != "" {
			list = append(list, r.Query)
		}
	}
	return list
}

// scrapePeriodShort gives a load of three seconds, the shortest of a rehearsal, a rate.
const scrapePeriodShort = time.Second

// met adds the exporters of a VM whose agent answered.
func (x *exporters) met(vm target.VM, hello agent.Hello) {
	found := &scrapedVM{group: vm.Group, node: vm.NodeID, agent: hello.MetricsAddress}
	if hello.MetricsAddress != "" {
		found.addresses = append(found.addresses, hello.MetricsAddress)
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
	x.change(func() { x.byVM[vm.Name] = found })
}

// placed follows a VM to another node.
func (x *exporters) placed(e interval.Event) {
	x.change(func() {
		if vm := x.byVM[e.Subject]; vm != nil {
			vm.node = e.Node
		}
	})
}

func (x *exporters) change(how func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	how()
	var list []metric.Exporter
	for _, name := range slices.Sorted(maps.Keys(x.byVM)) {
		vm := x.byVM[name]
		for _, address := range vm.addresses {
			e := metric.VMExporter(address, vm.group, name, vm.node)
			e.Whole = address == vm.agent
			list = append(list, e)
		}
	}
	x.scraper.Set(list)
}
