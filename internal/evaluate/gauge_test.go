package evaluate

import (
	"math"
	"testing"

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
