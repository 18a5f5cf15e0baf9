package targettest

import (
	"maps"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// meterLooksMax and meterPause bound how long the first averages may take.
const (
	meterLooksMax = 600
	meterPause    = 200 * time.Millisecond
)

// vmMeter expects averages of all running VMs with the tag, soon after the first sample, and of no others.
func vmMeter(s *suite) {
	if !s.needs(target.CapVMMeter) || !s.needs(target.CapVMPower) {
		return
	}
	m := require[target.VMMeter](s)
	vms := s.create("OLTP", 3)
	s.powerOn(vms[:2])
	want := names(vms[:2])
	for _, metric := range []target.VMMetric{target.VMCPUUsage, target.VMWritten, target.VMReceived} {
		var got []string
		for range meterLooksMax { // the next sample may come too soon for an average
			if got = s.measured(m, metric); slices.Equal(got, want) {
				break
			}
			time.Sleep(meterPause)
		}
		if !slices.Equal(got, want) {
			s.Errorf("%s is of %q, want %q", metric, got, want)
		}
	}
	nodes, of, err := m.SampleVMs(s.Context(), NewTag("another"))
	if err != nil || len(of) > 0 || len(nodes) == 0 {
		s.Errorf("another run sees %+v, and %d samples of nodes: %v", of, len(nodes), err)
	}
	if _, _, err := m.SampleVMs(s.Context(), target.Tag{Run: "run-1"}); err == nil {
		s.Error("an incomplete tag was taken")
	}
	s.must(require[target.VMPower](s).PowerOffVMs(s.Context(), s.tag, vms[:1]))
	if got := s.measured(m, target.VMMemory); slices.Contains(got, vms[0].Name) {
		s.Error("a VM without power has memory")
	}
	s.powerOn(vms[:1])
	_ = s.measured(m, target.VMCPUUsage) // whose counters restart
}

// measured returns the names of VMs that have a sample of the metric, and checks all samples.
func (s *suite) measured(m target.VMMeter, metric target.VMMetric) []string {
	s.Helper()
	_, samples, err := m.SampleVMs(s.Context(), s.tag)
	s.must(err)
	found, seen := map[string]bool{}, map[string]bool{}
	for _, one := range samples {
		key := one.VM + " " + string(one.Metric)
		if one.Value < 0 || one.Value != one.Value || one.Value > 1e15 || one.At.IsZero() || one.NodeID == "" || one.Group != "OLTP" ||
			!slices.Contains(target.VMMetrics(), one.Metric) || seen[key] {
			s.Errorf("sample %+v", one)
		}
		seen[key] = true
		if one.Metric == metric {
			found[one.VM] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
