package evaluate

import (
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// What a load knows at its end only is in the statistics, although the phase ends with it, and loads come in the order of their starts.
func TestGaugesOfTheEnd(t *testing.T) {
	const second = int64(1e9)
	phase := result.Window{Name: "run", FromNanos: second / 10, ToNanos: 13 * second / 10}
	record := gaugeRecord{}
	for _, workload := range []string{"B", "A"} {
		record.add(&interval.Interval{Workload: workload, LengthNanos: second, Gauges: interval.GaugeValues{1, math.NaN()}}, phase)
		record.add(&interval.Interval{Workload: workload, StartNanos: second, LengthNanos: second / 4, Gauges: interval.GaugeValues{3, 7}}, phase)
	}
	e := interval.Engine{Gauges: []interval.Gauge{{Name: "CPU"}, {Name: "at the end"}}}
	m := result.Manifest{Engines: map[string]interval.Engine{"A": e, "B": e}}
	list := record.results(&m, []result.LoadSummary{{Workload: "B"}, {Workload: "A"}, {Workload: "B", Instance: 2}}, phase, []result.Window{phase})
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
		want := map[int]float64{0: 1.4, 1: 7}[(len(names)-1)%2]
		if got := float64(r.Stats[0].Mean); got != want {
			t.Errorf("%s: mean %v, want %v", r.Name, got, want)
		}
	}
	if len(names) != 4 || names[0] != "B: CPU" || names[3] != "A: at the end" {
		t.Errorf("results %q", names)
	}
}

// A value that describes the load up to then is judged by the last of each VM, in the table of a run and in that of its loads.
func TestGaugesSoFar(t *testing.T) {
	const second = int64(1e9)
	phase := result.Window{Name: "run", ToNanos: 4 * second}
	record, loads := gaugeRecord{}, analysis.Loads{}
	for _, iv := range []interval.Interval{
		{VM: "a", LengthNanos: second, Gauges: interval.GaugeValues{10}},
		{VM: "b", LengthNanos: second, Gauges: interval.GaugeValues{math.NaN()}},
		{VM: "a", StartNanos: second, LengthNanos: second, Gauges: interval.GaugeValues{20}},
		{VM: "b", StartNanos: second, LengthNanos: second, Gauges: interval.GaugeValues{40}},
		{VM: "b", StartNanos: 2 * second, LengthNanos: second / 5, Gauges: interval.GaugeValues{60}},
	} {
		iv.Workload, iv.Instance = "w", 1
		record.add(&iv, phase)
		loads.Add(&iv)
		loads.AddGauges(&iv)
	}
	m := result.Manifest{Engines: map[string]interval.Engine{"w": {Gauges: []interval.Gauge{{Name: "mean so far", SoFar: true}}}}}
	windows := []result.Window{{Name: "before", ToNanos: second}, {Name: "after", FromNanos: second, ToNanos: 4 * second}}
	got := record.results(&m, []result.LoadSummary{{Workload: "w"}}, phase, windows)[0]
	if !got.Gauge {
		t.Errorf("not marked as a gauge: %+v", got)
	}
	for i, want := range []float64{40, 10, 40} { // a: 20, b: 60 at the end
		if s := got.Stats[i]; float64(s.Mean) != want || float64(s.Median) != want || !math.IsNaN(float64(s.CV)) {
			t.Errorf("window %q: %+v, want %g", s.Window, s, want)
		}
	}
	if all := loads.Summaries(&analysis.Timeline{}, m.Engines, nil); len(all) != 1 || float64(all[0].Gauges[0].Mean) != 40 || all[0].Gauges[0].Max != 60 {
		t.Errorf("%+v", all)
	}
}
