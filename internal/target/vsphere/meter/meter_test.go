package meter

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

var at = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func metricOf(values map[string]map[string][]int64) (*types.PerfEntityMetric, map[int32]string) {
	m := &types.PerfEntityMetric{SampleInfo: []types.PerfSampleInfo{{Timestamp: at}, {Timestamp: at.Add(20 * time.Second)}}}
	known := map[int32]string{}
	id := int32(0)
	for name, instances := range values {
		id++
		known[id] = name
		for instance, series := range instances {
			m.Value = append(m.Value, &types.PerfMetricIntSeries{
				PerfMetricSeries: types.PerfMetricSeries{Id: types.PerfMetricId{CounterId: id, Instance: instance}}, Value: series,
			})
		}
	}
	return m, known
}

// Disks are added up, their response times weighted by operations; a value of −1 is none.
func TestValuesOfVM(t *testing.T) {
	s := newest(metricOf(map[string]map[string][]int64{
		cpuUsage: {"": {1, 2500}}, cpuReady: {"": {1, 4000}}, memConsumed: {"": {7, -1}},
		reads: {"scsi0:1": {1, 300}, "scsi0:2": {1, 100}}, readMicros: {"scsi0:1": {1, 1000}, "scsi0:2": {1, 5000}},
		writes: {"scsi0:1": {1, 0}}, writeMicros: {"scsi0:1": {1, 900}}, writeKiB: {"scsi0:1": {1, 8}, "scsi0:2": {1, 2}},
	}))
	if !s.raw.Equal(at.Add(20 * time.Second)) {
		t.Errorf("the newest interval is of %v", s.raw)
	}
	want := map[target.VMMetric]float64{
		target.VMCPUUsage: 0.25, target.VMCPUSteal: 0.1, target.VMReads: 400, target.VMReadTime: 0.002, target.VMWrites: 0,
		target.VMWritten: 10 << 10,
	}
	got := map[target.VMMetric]float64{}
	for _, v := range s.ofVM(2) {
		got[v.metric] = v.value
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for metric, v := range want {
		if got[metric] != v {
			t.Errorf("%s is %g, want %g", metric, got[metric], v)
		}
	}
}

// Simulators and old hosts return intervals in another order, or none.
func TestNewestInterval(t *testing.T) {
	m, known := metricOf(map[string]map[string][]int64{cpuUsage: {"": {1, 2}}})
	m.SampleInfo[0], m.SampleInfo[1] = m.SampleInfo[1], m.SampleInfo[0]
	if v, ok := newest(m, known).total(cpuUsage); !ok || v != 1 {
		t.Errorf("got %g, %t", v, ok)
	}
	m.SampleInfo = nil
	if newest(m, known) != nil {
		t.Error("a host without intervals has a value")
	}
	if _, ok := (*series)(nil).total(cpuUsage); ok {
		t.Error("an object without an answer has a value")
	}
}
