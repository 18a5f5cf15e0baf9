package meter

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

// Resources of the metrics API.
var (
	podMetrics  = api.Resource{GroupVersionResource: metricsVersion.WithResource("pods"), Kind: "PodMetrics"}
	nodeMetrics = api.Resource{GroupVersionResource: metricsVersion.WithResource("nodes"), Kind: "NodeMetrics", Cluster: true}

	metricsVersion = schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
)

// offerMax bounds how long it may take to find out whether there is a metrics API.
const offerMax = 3 * time.Second

// OffersMetricsAPI reports whether the cluster serves the metrics API now.
func OffersMetricsAPI(ctx context.Context, c *api.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, offerMax)
	defer cancel()
	_, err := c.Raw(ctx, http.MethodGet, "/apis/"+metricsVersion.String(), nil)
	return err == nil
}

// usage is an object of the metrics API.
type usage struct {
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Timestamp  metav1.Time       `json:"timestamp"` // end of the window, by the cluster's clock, without its fraction of a second
	Usage      quantities        `json:"usage"`     // of a node
	Containers []struct {
		Usage quantities `json:"usage"`
	} `json:"containers"`
}

type quantities struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// listed reads the metrics API: one list of pods, and one of nodes if the user may read them.
func (m *Meter) listed(ctx context.Context, nodes []Node, vms []VM) ([]target.NodeSample, []target.VMSample, error) {
	m.listing.reading.Lock()
	defer m.listing.reading.Unlock()
	if time.Now().Before(m.listing.next) {
		return nil, nil, nil
	}
	began := time.Now()
	pods, err := api.List[usage](ctx, m.client, podMetrics, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	ofNodes, err := api.List[usage](ctx, m.client, nodeMetrics, metav1.ListOptions{})
	if err != nil && !api.Forbidden(err) {
		return nil, nil, err
	}
	now := time.Now()
	m.listing.next = now.Add(min(readingShare*now.Sub(began), readingPause))
	// Nodes and API server are taken to agree on the time, as clusters need it. No window ends after it was read.
	end := func(u *usage) time.Time {
		at := u.Timestamp.Add(time.Second/2 - m.client.Ahead())
		if at.After(now) {
			return now
		}
		return at
	}
	return m.ofNodes(nodes, ofNodes, end), m.ofVMs(vms, pods, end), nil
}

// fresh indexes what the metrics API has not said before, by name.
func (m *Meter) fresh(kind string, all []usage) map[string]*usage {
	byName := map[string]*usage{}
	for i, u := range all {
		name := u.Metadata.Namespace + "/" + u.Metadata.Name
		if m.counts.fresh(kind+name, workingSet, reading{at: u.Timestamp.Time}) {
			byName[name] = &all[i]
		}
	}
	return byName
}

func (m *Meter) ofVMs(vms []VM, all []usage, end func(*usage) time.Time) []target.VMSample {
	byName := m.fresh("pod ", all)
	var samples []target.VMSample
	for _, vm := range vms {
		u := byName[vm.Namespace+"/"+vm.Pod]
		if u == nil {
			continue
		}
		var cpu, memory float64
		for _, one := range u.Containers {
			cpu += one.Usage.CPU.AsApproximateFloat64()
			memory += one.Usage.Memory.AsApproximateFloat64()
		}
		s := target.VMSample{VM: vm.Name, Group: vm.Group, NodeID: vm.Node, At: end(u)}
		s.Metric, s.Value = target.VMCPUUsage, cpu/float64(max(1, vm.VCPUs))
		samples = append(samples, s)
		s.Metric, s.Value = target.VMMemory, memory
		samples = append(samples, s)
	}
	return samples
}

func (m *Meter) ofNodes(nodes []Node, all []usage, end func(*usage) time.Time) []target.NodeSample {
	byName := m.fresh("node ", all)
	var samples []target.NodeSample
	for _, n := range nodes {
		u := byName["/"+n.Name]
		if u == nil {
			continue
		}
		for _, one := range []struct {
			metric string
			used   resource.Quantity
			all    float64
		}{{cpuPercent, u.Usage.CPU, n.CPUs}, {memoryPercent, u.Usage.Memory, n.Bytes}} {
			if one.all > 0 {
				samples = append(samples, target.NodeSample{
					NodeID: n.Name, Metric: one.metric, At: end(u), Value: min(100, 100*one.used.AsApproximateFloat64()/one.all), UnitSymbol: "%",
				})
			}
		}
	}
	return samples
}
