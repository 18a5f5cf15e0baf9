package vsphere

import (
	"maps"

	"github.com/braggdev/bragg/internal/collect"
)

// counter is one counter of vSphere and the metric that it becomes.
type counter struct {
	name   string // "virtualDisk.read.average"
	metric string
	labels map[string]string
	factor float64 // to the base unit
	// instances: the counter has a value for each disk or datastore; else only its aggregate is read.
	instances bool
	// perCPU divides by the number of virtual CPUs.
	perCPU bool
	// operations is the counter of operations per second that a latency needs; "" for others.
	operations string
}

// Factors to base units. vSphere's kilobyte has 1,024 bytes, its percentages are in 1/100 %, and summations are over an interval.
const (
	kilobyte    = 1024
	percent     = 1.0 / 10_000
	millisecond = 1e-3
	microsecond = 1e-6
	ofInterval  = 1.0 / 20_000 // milliseconds in 20 seconds
)

func direction(name string) map[string]string { return map[string]string{collect.LabelDirection: name} }

var hostCounters = []counter{
	{name: "cpu.usage.average", metric: collect.CPUUsage, factor: percent},
	{name: "mem.usage.average", metric: collect.MemoryUsage, factor: percent},
	{name: "net.received.average", metric: collect.Network, labels: direction("receive"), factor: kilobyte},
	{name: "net.transmitted.average", metric: collect.Network, labels: direction("transmit"), factor: kilobyte},
	{name: "datastore.numberReadAveraged.average", metric: collect.OperationsRate, labels: direction(collect.Read), factor: 1, instances: true},
	{name: "datastore.numberWriteAveraged.average", metric: collect.OperationsRate, labels: direction(collect.Write), factor: 1, instances: true},
	{name: "datastore.read.average", metric: collect.BytesRate, labels: direction(collect.Read), factor: kilobyte, instances: true},
	{name: "datastore.write.average", metric: collect.BytesRate, labels: direction(collect.Write), factor: kilobyte, instances: true},
	{name: "datastore.totalReadLatency.average", metric: collect.Latency, labels: direction(collect.Read), factor: millisecond, instances: true,
		operations: "datastore.numberReadAveraged.average"},
	{name: "datastore.totalWriteLatency.average", metric: collect.Latency, labels: direction(collect.Write), factor: millisecond, instances: true,
		operations: "datastore.numberWriteAveraged.average"},
}

var vmCounters = []counter{
	{name: "cpu.usage.average", metric: collect.CPUUsage, factor: percent},
	{name: "cpu.ready.summation", metric: collect.CPUReady, factor: ofInterval, perCPU: true},
	{name: "mem.usage.average", metric: collect.MemoryUsage, factor: percent},
	{name: "net.received.average", metric: collect.Network, labels: direction("receive"), factor: kilobyte},
	{name: "net.transmitted.average", metric: collect.Network, labels: direction("transmit"), factor: kilobyte},
	{name: "virtualDisk.numberReadAveraged.average", metric: collect.OperationsRate, labels: direction(collect.Read), factor: 1, instances: true},
	{name: "virtualDisk.numberWriteAveraged.average", metric: collect.OperationsRate, labels: direction(collect.Write), factor: 1, instances: true},
	{name: "virtualDisk.read.average", metric: collect.BytesRate, labels: direction(collect.Read), factor: kilobyte, instances: true},
	{name: "virtualDisk.write.average", metric: collect.BytesRate, labels: direction(collect.Write), factor: kilobyte, instances: true},
	// In microseconds; virtualDisk.totalReadLatency.average has whole milliseconds only.
	{name: "virtualDisk.readLatencyUS.latest", metric: collect.Latency, labels: direction(collect.Read), factor: microsecond, instances: true,
		operations: "virtualDisk.numberReadAveraged.average"},
	{name: "virtualDisk.writeLatencyUS.latest", metric: collect.Latency, labels: direction(collect.Write), factor: microsecond, instances: true,
		operations: "virtualDisk.numberWriteAveraged.average"},
}

// labelsOf are the labels of a value of a counter; ok is false for an instance that is not read.
func labelsOf(o object, c counter, instance string, f *found) (labels map[string]string, ok bool) {
	labels = map[string]string{collect.LabelObject: o.kind, collect.LabelName: o.name, collect.LabelNode: o.host}
	maps.Copy(labels, c.labels)
	if o.kind == "vm" {
		labels[collect.LabelVM] = o.name
	}
	switch {
	case c.instances == (instance == "") || instance == "*": // simulators repeat the wildcard
		return nil, false
	case !c.instances:
	case o.kind == "vm":
		labels[collect.LabelObject], labels[collect.LabelName] = "disk", instance
	default:
		d, known := f.datastores[instance]
		if !known {
			return nil, false
		}
		labels[collect.LabelObject], labels[collect.LabelName] = "datastore", d.name
	}
	return labels, true
}
