package nutanix

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// statistic is one statistic of Prism and the metric that it becomes.
type statistic struct {
	metric     string
	labels     map[string]string
	factor     float64
	operations string // the operations per second that a latency needs
	// perInterval: it is a sum over the interval of the sample, not a rate.
	perInterval bool
	better      string // the statistic that says the same of what is meant, and is read if there is one
}

// Factors to base units. Prism's kilobyte has 1,024 bytes: sums of I/O sizes (total_io_size_kbytes) of real clusters are multiples of 4, the size of their
// blocks, and bandwidths are those sums per second.
const (
	kilobyte    = 1024
	megabyte    = 1 << 20
	million     = 1e-6 // ppm
	microsecond = 1e-6
)

// statistics are known by their names without case and separators: v1 and v2 write controller_num_read_iops, v4 controllerNumReadIops, and
// v4 alone has four ways to write microseconds.
var statistics = map[string]statistic{
	"controllernumreadiops":          {metric: collect.OperationsRate, labels: direction(collect.Read), factor: 1},
	"controllernumwriteiops":         {metric: collect.OperationsRate, labels: direction(collect.Write), factor: 1},
	"controllerreadiobandwidthkbps":  {metric: collect.BytesRate, labels: direction(collect.Read), factor: kilobyte},
	"controllerwriteiobandwidthkbps": {metric: collect.BytesRate, labels: direction(collect.Write), factor: kilobyte},
	"controlleravgreadiolatency":     {metric: collect.Latency, labels: direction(collect.Read), factor: microsecond, operations: "controllernumreadiops"},
	"controlleravgwriteiolatency":    {metric: collect.Latency, labels: direction(collect.Write), factor: microsecond, operations: "controllernumwriteiops"},
	"storagecapacitybytes":           {metric: collect.Size, factor: 1},
	"storageusagebytes":              {metric: collect.Used, factor: 1},
	"hypervisorcpuusageppm":          {metric: collect.CPUUsage, factor: million},
	"hypervisorcpureadytimeppm":      {metric: collect.CPUReady, factor: million},
	"controllerrandomioppm":          {metric: collect.RandomShare, factor: million},

	// Of hosts and clusters; Prism Element calls it hypervisor_memory_usage_ppm.
	"aggregatehypervisormemoryusageppm": {metric: collect.MemoryUsage, factor: million},
	"overallmemoryusageppm":             {metric: collect.MemoryUsage, factor: million, better: "aggregatehypervisormemoryusageppm"},
	// Of VMs; the hypervisor's view is the memory that it gave to the VM, which on AHV is all of it at any time.
	"memoryusageppm":           {metric: collect.MemoryUsage, factor: million},
	"hypervisormemoryusageppm": {metric: collect.MemoryUsage, factor: million, better: "memoryusageppm"},

	"controllerwss120secondreadmb":   {metric: collect.WorkingSet, labels: window("120s", collect.Read), factor: megabyte},
	"controllerwss120secondwritemb":  {metric: collect.WorkingSet, labels: window("120s", collect.Write), factor: megabyte},
	"controllerwss120secondunionmb":  {metric: collect.WorkingSet, labels: window("120s", "union"), factor: megabyte},
	"controllerwss3600secondreadmb":  {metric: collect.WorkingSet, labels: window("3600s", collect.Read), factor: megabyte},
	"controllerwss3600secondwritemb": {metric: collect.WorkingSet, labels: window("3600s", collect.Write), factor: megabyte},
	"controllerwss3600secondunionmb": {metric: collect.WorkingSet, labels: window("3600s", "union"), factor: megabyte},

	"controllerreadsourceoplogbytes":           {metric: collect.TierBytes, labels: tier("read", "oplog"), perInterval: true, factor: 1},
	"controllerreadsourceestoressdlocalbytes":  {metric: collect.TierBytes, labels: tier("read", "ssd local"), perInterval: true, factor: 1},
	"controllerreadsourceestoressdremotebytes": {metric: collect.TierBytes, labels: tier("read", "ssd remote"), perInterval: true, factor: 1},
	"controllerreadsourceestorehddlocalbytes":  {metric: collect.TierBytes, labels: tier("read", "hdd local"), perInterval: true, factor: 1},
	"controllerreadsourceestorehddremotebytes": {metric: collect.TierBytes, labels: tier("read", "hdd remote"), perInterval: true, factor: 1},
	"controllerwritedestestoressdbytes":        {metric: collect.TierBytes, labels: tier("write", "ssd"), perInterval: true, factor: 1},
	"controllerwritedestestorehddbytes":        {metric: collect.TierBytes, labels: tier("write", "hdd"), perInterval: true, factor: 1},
	"controlleroplogdraindestssdbytes":         {metric: collect.TierBytes, labels: tier("drain", "ssd"), perInterval: true, factor: 1},
	"controlleroplogdraindesthddbytes":         {metric: collect.TierBytes, labels: tier("drain", "hdd"), perInterval: true, factor: 1},
}

func direction(name string) map[string]string { return map[string]string{collect.LabelDirection: name} }

func window(length, name string) map[string]string {
	return map[string]string{"window": length, collect.LabelDirection: name}
}

func tier(name, of string) map[string]string {
	return map[string]string{collect.LabelDirection: name, "tier": of}
}

// plain is a name of a statistic without case, separators and the unit of a latency.
func plain(name string) string {
	name = strings.ToLower(strings.NewReplacer("_", "", ".", "").Replace(name))
	for _, unit := range []string{"usecs", "micros"} {
		if short, ok := strings.CutSuffix(name, unit); ok && strings.HasSuffix(short, "latency") {
			return short
		}
	}
	return name
}

// derive adds what follows from other statistics of the same time: of disks of VMs, Prism has neither writes per second nor the share of random
// operations.
func derive(values map[string]float64) {
	missing := func(name string) bool { _, ok := values[name]; return !ok }
	all, counted := values["controllernumiops"]
	reads, read := values["controllernumreadiops"]
	if counted && read && missing("controllernumwriteiops") && all >= reads && reads >= 0 {
		values["controllernumwriteiops"] = all - reads
	}
	if sequential, ok := values["controllerseqioppm"]; ok && all > 0 && sequential >= 0 && missing("controllerrandomioppm") {
		values["controllerrandomioppm"] = 1e6 - sequential
	}
}

// sampleOf makes the sample of one value. others has all statistics of the same time by their plain names. Prism writes −1 for unknown values, and
// 0 for latencies without operations.
func sampleOf(e entity, name string, value float64, others map[string]float64, at time.Time) (collect.Sample, bool) {
	s, ok := statistics[name]
	if !ok || !(value >= 0) || math.IsInf(value, 0) { // a text may be "NaN"
		return collect.Sample{}, false
	}
	if better, has := others[s.better]; has && better >= 0 {
		return collect.Sample{}, false
	}
	seconds := intervalOf(others)
	if s.operations != "" && (value == 0 || collect.FewOperations(others[s.operations], seconds)) {
		return collect.Sample{}, false
	}
	if s.perInterval {
		value /= seconds
	}
	labels := e.labels()
	maps.Copy(labels, s.labels)
	return collect.Sample{Name: s.metric, Labels: labels, Value: collect.Scale(value, s.factor), At: at}, true
}

// intervalOf is the length in seconds of the interval that statistics of one time describe: as they say, else how often Prism samples.
func intervalOf(others map[string]float64) float64 {
	for _, name := range []string{"controllertimespanmicros", "controllertimespanusecs"} {
		if seconds := others[name] * microsecond; seconds >= 1 && seconds <= timespanMax.Seconds() {
			return seconds
		}
	}
	return sampling.Seconds()
}

// timespanMax is the longest interval of Prism: beyond it the statistic is something else.
const timespanMax = time.Hour
