package collect

import (
	"math"
	"slices"
)

// Names of the metrics of the kinds that this program reads itself. All storage systems share them, so that one query fits all.
const (
	OperationsRate = "bragg_storage_operations_per_second"
	BytesRate      = "bragg_storage_bytes_per_second"
	Latency        = "bragg_storage_latency_seconds"
	Operations     = "bragg_storage_operations_total"
	Bytes          = "bragg_storage_bytes_total"
	OperationTime  = "bragg_storage_operation_seconds_total"
	Size           = "bragg_storage_size_bytes"
	Used           = "bragg_storage_used_bytes"
	CPUUsage       = "bragg_storage_cpu_usage_ratio"
	CPUReady       = "bragg_storage_cpu_ready_ratio"
	MemoryUsage    = "bragg_storage_memory_usage_ratio"
	Network        = "bragg_storage_network_bytes_per_second"
	RandomShare    = "bragg_storage_random_operations_ratio"
	WorkingSet     = "bragg_storage_working_set_bytes"
	TierBytes      = "bragg_storage_tier_bytes_per_second"
	Zeroed         = "bragg_storage_disk_zeroed_ratio"

	// Of the source itself.
	Up       = "bragg_source_up"
	Age      = "bragg_source_age_seconds"
	Duration = "bragg_source_read_duration_seconds"
)

// Metric describes one of them.
type Metric struct {
	Name, Help string
	Counter    bool
}

// Metrics lists all of them.
func Metrics() []Metric { return slices.Clone(metrics) }

var metrics = []Metric{
	{OperationsRate, "Operations that the storage completed per second, the mean over one interval of the source.", false},
	{BytesRate, "Bytes that the storage transferred per second, the mean over one interval of the source.", false},
	{Latency, "Mean latency of the operations of one interval of the source; absent with too few operations.", false},
	{Operations, "Operations that the storage completed.", true},
	{Bytes, "Bytes that the storage transferred.", true},
	{OperationTime, "Sum of the latencies of operations.", true},
	{Size, "Capacity of the object.", false},
	{Used, "Used part of the capacity.", false},
	{CPUUsage, "CPU time used per time; at 1 all CPUs of the object are busy.", false},
	{CPUReady, "Time in which virtual CPUs were runnable and waited for a CPU, per time and virtual CPU.", false},
	{MemoryUsage, "Used part of the memory.", false},
	{Network, "Bytes received and transmitted per second.", false},
	{RandomShare, "Share of operations that the storage categorizes as random.", false},
	{WorkingSet, "Bytes that were accessed within a window, as the storage estimates them.", false},
	{TierBytes, "Bytes per second that a tier of the storage served or took.", false},
	{Zeroed, "Progress of zeroing a disk; at 1 it is zeroed.", false},
	{Up, "Whether the source answered: 1 or 0.", false},
	{Age, "Age of the newest value of the source when it was read.", false},
	{Duration, "Time that reading the source took.", false},
}

// Describe returns the description of a metric.
func Describe(name string) (Metric, bool) {
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return metrics[i], true
}

// Directions of operations and bytes.
const (
	Read  = "read"
	Write = "write"
	Other = "other"
)

// LatencyOperationsMin is the number of operations in an interval from which their mean latency is reported. The mean of a few
// operations is noise, and storage systems report 0 or −1 without any.
const LatencyOperationsMin = 10

// Scale converts a value to its base unit. Dividing by a power of ten is exact where multiplying by its inverse is not: 800 µs are 0.0008 s, not
// 0.0007999999999999999 s.
func Scale(value, factor float64) float64 {
	if factor > 0 && factor < 1 {
		return value / math.Round(1/factor)
	}
	return value * factor
}

// FewOperations reports whether so many operations per second over so many seconds are too few for a mean latency.
func FewOperations(perSecond, seconds float64) bool {
	return !(perSecond*seconds >= LatencyOperationsMin)
}
