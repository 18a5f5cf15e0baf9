package evaluate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session/meter"
	"github.com/braggdev/bragg/internal/target"
)

// vmRun is a run phase of ten seconds in which the hypervisor counted what readings says of each second.
func vmRun(t *testing.T, readings func(second int64) []target.VMSample) *result.Bundle {
	t.Helper()
	var samples []result.Sample
	now := time.Now()
	for s := range int64(10) {
		of := readings(s)
		for i := range of {
			of[i].At = now
		}
		samples = append(samples, meter.VMSamples(of, meter.Axis{Now: now, Nanos: s*1e9 + 1e8})...)
	}
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "run"}, {AtNanos: 10e9, Kind: interval.EventPhaseEnded, Phase: "run"}}
	return record(t, events, nil, samples)
}

func TestVMsByTheHypervisor(t *testing.T) {
	b := vmRun(t, func(s int64) []target.VMSample {
		of := []target.VMSample{
			{VM: "g-0001", Group: "g", NodeID: "n1", Metric: target.VMCPUUsage, Value: 0.25},
			{VM: "g-0001", Group: "g", NodeID: "n1", Metric: target.VMWriteTime, Value: 0.002},
			{VM: "g-0001", Group: "g", NodeID: "n1", Metric: "of_another_version", Value: 1},
		}
		if s < 4 || s >= 8 { // it has no power from 4 to 8
			of = append(of, target.VMSample{VM: "g-0002", Group: "g", NodeID: "n2", Metric: target.VMCPUUsage, Value: 1.5})
		}
		return of
	})
	s := evaluated(t, b, scenario.Result{Name: "net", Source: scenario.FromMetric, Metric: "NetReceived.Avg.KilobytesPerSecond"})
	if len(s.Results) != 3 || s.Results[0].Unasked || s.Results[0].Missing == "" {
		t.Fatalf("got %+v", s.Results)
	}
	cpu, writes := s.Results[1], s.Results[2]
	if !cpu.Unasked || cpu.Unit != "%" || cpu.Simulated || !strings.Contains(cpu.Source, "Hypervisor metric") || !strings.Contains(cpu.Title, "hypervisor") ||
		cpu.Stats[0].Mean != 25 || len(cpu.Series) != 2 {
		t.Errorf("got %+v", cpu)
	}
	two := numbers(cpu.Series[1].Points)
	if two[2] != "2.5:150" || two[5] != "5.5:NaN" || two[6] != "6.5:NaN" || two[7] != "7.5:150" {
		t.Errorf("a VM without power: %v", two)
	}
	if writes.Unit != "ns" || !near(writes.Stats[0].Max, 2e6) || len(writes.Series) != 1 {
		t.Errorf("got %+v", writes)
	}
}

// Of many VMs each group has the lowest, the mean and the highest.
func TestManyVMsByTheHypervisor(t *testing.T) {
	b := vmRun(t, func(int64) []target.VMSample {
		var of []target.VMSample
		for i := range 150 {
			of = append(of, target.VMSample{VM: fmt.Sprintf("g-%04d", i+1), Group: "g", Metric: target.VMWrites, Value: float64(i), Simulated: true})
		}
		return append(of, target.VMSample{VM: "h-0001", Group: "h", Metric: target.VMWrites, Value: 7})
	})
	s := evaluated(t, b)
	if len(s.Results) != 1 || !s.Results[0].Simulated || !strings.Contains(s.Results[0].Source, "(151 VMs)") {
		t.Fatalf("got %+v", s.Results)
	}
	var got []string
	for _, st := range s.Results[0].Stats {
		if st.Window == "" {
			got = append(got, fmt.Sprintf("%s %g", st.Series, float64(st.Mean)))
		}
	}
	want := "[g, lowest 0 g, mean 74.5 g, highest 149 h, lowest 7 h, mean 7 h, highest 7]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// reading is a reading of nodes at that time of a run, whose samples are as new as can be.
func reading(atNanos int64, samples ...target.NodeSample) []result.Sample {
	now := time.Now()
	for i := range samples {
		samples[i].At = now
	}
	return meter.NodeSamples(samples, meter.Axis{Now: now, Nanos: atNanos})
}
