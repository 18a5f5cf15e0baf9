package meter

import (
	"context"
	"slices"
	"time"

	"github.com/vmware/govmomi/performance"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// stamp is the end of an interval.
type stamp struct {
	raw time.Time // as the vCenter shows it
	at  time.Time // by the clock of this program
}

// after reports whether s is of a later interval than one that was returned; the zero value of which means none. The clock of a vCenter may be
// set back.
func (s stamp) after(returned stamp) bool {
	return s.raw.After(returned.raw) || s.raw.Before(returned.raw) && s.at.Sub(returned.at) > intervalSeconds*time.Second/2
}

// series is the newest interval of one object.
type series struct {
	stamp
	values map[string]map[string]int64 // by counter and instance
}

// query reads counters of objects. It requests only those that the vCenter has: an unknown one fails the whole query.
func (m *Meter) query(ctx context.Context, objects []types.ManagedObjectReference, names []string) (map[types.ManagedObjectReference]*series, error) {
	known := map[int32]string{}
	var ids []types.PerfMetricId
	for _, name := range names {
		id, ok := m.counters[name]
		if !ok {
			continue
		}
		known[id] = name
		instance := ""
		if perDisk[name] {
			instance = "*"
		}
		ids = append(ids, types.PerfMetricId{CounterId: id, Instance: instance})
	}
	found := map[types.ManagedObjectReference]*series{}
	if len(ids) == 0 {
		return found, nil
	}
	at, here, err := m.vc.Now(ctx)
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(objects, entitiesMax) {
		var specs []types.PerfQuerySpec
		for _, o := range batch {
			specs = append(specs, types.PerfQuerySpec{
				Entity: o, MetricId: ids, IntervalId: intervalSeconds, MaxSample: 1, Format: string(types.PerfFormatNormal),
			})
		}
		answer, err := performance.NewManager(m.vc.Client).Query(ctx, specs)
		if err != nil {
			return nil, err
		}
		for _, one := range answer {
			if metric, ok := one.(*types.PerfEntityMetric); ok {
				if s := newest(metric, known); s != nil {
					s.at = here.Add(s.raw.Sub(at))
					found[metric.Entity] = s
				}
			}
		}
	}
	return found, nil
}

// newest picks the last interval of an object; nil without any. A value of −1 means that vSphere has none.
func newest(m *types.PerfEntityMetric, known map[int32]string) *series {
	last := -1
	for i, info := range m.SampleInfo {
		if last < 0 || info.Timestamp.After(m.SampleInfo[last].Timestamp) {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	s := &series{stamp: stamp{raw: m.SampleInfo[last].Timestamp}, values: map[string]map[string]int64{}}
	for _, one := range m.Value {
		ints, ok := one.(*types.PerfMetricIntSeries)
		name := ""
		if ok {
			name = known[ints.Id.CounterId]
		}
		if name == "" || last >= len(ints.Value) || ints.Value[last] < 0 {
			continue
		}
		if s.values[name] == nil {
			s.values[name] = map[string]int64{}
		}
		s.values[name][ints.Id.Instance] = ints.Value[last]
	}
	return s
}

// total adds up the instances of a counter, or takes its aggregate; false: it has no value.
func (s *series) total(name string) (float64, bool) {
	if s == nil || len(s.values[name]) == 0 {
		return 0, false
	}
	var sum int64
	for instance, v := range s.values[name] {
		if instance == "" && len(s.values[name]) == 1 || instance != "" {
			sum += v
		}
	}
	return float64(sum), true
}

// Counters of VMs.
const (
	cpuUsage    = "cpu.usage.average"    // 1/100 %
	cpuReady    = "cpu.ready.summation"  // ms of all vCPUs in the interval
	memConsumed = "mem.consumed.average" // KiB
	reads       = "virtualDisk.numberReadAveraged.average"
	writes      = "virtualDisk.numberWriteAveraged.average"
	readKiB     = "virtualDisk.read.average"
	writeKiB    = "virtualDisk.write.average"
	readMicros  = "virtualDisk.readLatencyUS.latest"
	writeMicros = "virtualDisk.writeLatencyUS.latest"
	received    = "net.received.average"
	sent        = "net.transmitted.average"
)

var vmCounters = []string{cpuUsage, cpuReady, memConsumed, reads, writes, readKiB, writeKiB, readMicros, writeMicros, received, sent}

// perDisk are counters with a value for each disk.
var perDisk = map[string]bool{reads: true, writes: true, readKiB: true, writeKiB: true, readMicros: true, writeMicros: true}

const kibibyte = 1024

// value is one value of a VM.
type value struct {
	metric target.VMMetric
	value  float64
}

// ofVM converts the counters of a VM.
func (s *series) ofVM(vcpus int) []value {
	var all []value
	for _, c := range []struct {
		metric target.VMMetric
		name   string
		factor float64
	}{
		{target.VMCPUUsage, cpuUsage, 1.0 / 10_000},
		{target.VMCPUSteal, cpuReady, 1 / (1000 * intervalSeconds * float64(max(1, vcpus)))},
		{target.VMMemory, memConsumed, kibibyte},
		{target.VMReads, reads, 1}, {target.VMWrites, writes, 1},
		{target.VMReadBytes, readKiB, kibibyte}, {target.VMWritten, writeKiB, kibibyte},
		{target.VMReceived, received, kibibyte}, {target.VMTransmitted, sent, kibibyte},
	} {
		if v, ok := s.total(c.name); ok {
			all = append(all, value{c.metric, v * c.factor})
		}
	}
	if v, ok := s.mean(readMicros, reads); ok {
		all = append(all, value{target.VMReadTime, v})
	}
	if v, ok := s.mean(writeMicros, writes); ok {
		all = append(all, value{target.VMWriteTime, v})
	}
	return all
}

// mean is the mean response time over all disks in seconds, weighted by their operations; false without any.
func (s *series) mean(micros, operations string) (float64, bool) {
	var sum, count float64
	for disk, n := range s.values[operations] {
		if v, ok := s.values[micros][disk]; ok && n > 0 && v > 0 {
			sum, count = sum+float64(n)*float64(v), count+float64(n)
		}
	}
	if count == 0 {
		return 0, false
	}
	return sum / count / 1e6, true
}
