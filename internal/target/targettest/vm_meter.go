package targettest

import (
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// meterLooksMax and meterPause bound how long the first averages may take.
const (
	meterLooksMax = 600
	meterPause    = 200 * time.Millisecond
)

// polls calls look until it returns true, for a bounded time: a platform may collect less often than it is read.
func (s *suite) polls(look func() bool) {
	for range meterLooksMax {
		if look() || s.Failed() {
			return
		}
		time.Sleep(meterPause)
	}
}

// vmMeter expects averages of all running VMs with the tag, soon after the first sample, and of no others.
func vmMeter(s *suite) {
	if !s.needs(target.CapVMMeter) || !s.needs(target.CapVMPower) {
		return
	}
	m := require[target.VMMeter](s)
	vms := s.create("OLTP", 3)
	s.powerOn(vms[:2])
	missing := map[string]bool{}
	for _, metric := range []target.VMMetric{target.VMCPUUsage, target.VMWritten, target.VMReceived} {
		for _, vm := range vms[:2] {
			if !slices.Contains(s.h.Uncounted, string(metric)) {
				missing[vm.Name+" "+string(metric)] = true
			}
		}
	}
	s.polls(func() bool {
		for key := range s.measured(m) {
			delete(missing, key)
			if strings.HasPrefix(key, vms[2].Name+" ") {
				s.Errorf("a VM without power has %s", key)
			}
		}
		return len(missing) == 0
	})
	for key := range missing {
		s.Errorf("no sample of %s", key)
	}
	if _, of, err := m.SampleVMs(s.Context(), NewTag("another")); err != nil || len(of) > 0 {
		s.Errorf("another run sees %+v: %v", of, err)
	}
	if s.nodes == 0 {
		s.Error("the samples of VMs came without any of nodes")
	}
	if _, _, err := m.SampleVMs(s.Context(), target.Tag{Run: "run-1"}); err == nil {
		s.Error("an incomplete tag was taken")
	}
	s.must(require[target.VMPower](s).PowerOffVMs(s.Context(), s.tag, vms[:1]))
	if s.measured(m)[vms[0].Name+" "+string(target.VMMemory)] {
		s.Error("a VM without power has memory")
	}
	s.powerOn(vms[:1])
	_ = s.measured(m) // its counters restart
}

// measured makes one reading and returns which VMs have which metrics: "OLTP-0001 cpu_usage_ratio". It checks all samples.
func (s *suite) measured(m target.VMMeter) map[string]bool {
	s.Helper()
	nodes, samples, err := m.SampleVMs(s.Context(), s.tag)
	s.must(err)
	s.nodes += len(nodes)
	seen := map[string]bool{}
	for _, one := range samples {
		key := one.VM + " " + string(one.Metric)
		if one.Value < 0 || one.Value != one.Value || one.Value > 1e15 || one.NodeID == "" || one.Group != "OLTP" ||
			!slices.Contains(target.VMMetrics(), one.Metric) || slices.Contains(s.h.Uncounted, string(one.Metric)) || seen[key] {
			s.Errorf("sample %+v", one)
		}
		seen[key] = true
		s.wantNew(key, one.At)
	}
	return seen
}

// ageMax is how old a sample may be: platforms average over up to half a minute, and show it up to a minute later.
const ageMax = 2 * time.Minute

// wantNew checks that at is by the clock of this program, and after that of the sample before.
func (s *suite) wantNew(key string, at time.Time) {
	s.Helper()
	if age := time.Since(at); age > ageMax || age < -time.Second {
		s.Errorf("a sample of %s is %v old", key, age)
	}
	if !at.After(s.sampled[key]) {
		s.Errorf("a sample of %s of %v is returned after that of %v", key, at, s.sampled[key])
	}
	if s.sampled == nil {
		s.sampled = map[string]time.Time{}
	}
	s.sampled[key] = at
}
