package mlperf

import "github.com/braggdev/bragg/internal/interval"

// Demand returns what one accelerator takes at full use: samples and megabytes per second.
func Demand(modelName, accelerator string) (samples, megabytes float64) {
	m, _ := findModel(modelName)
	a, _ := m.on(accelerator)
	return a.samplesPerSecond(), a.samplesPerSecond() * m.recordBytes / 1e6
}

// CheckpointGauges returns what is noted for an interval in which several checkpoints ended, and for the one after it.
func CheckpointGauges(ended ...interval.GaugeValues) (now, next interval.GaugeValues) {
	r := &record{}
	r.to.Gauges = interval.UnknownGauges(len(checkpointGauges))
	for _, values := range ended {
		r.set(values)
	}
	return r.takeCheckpoints(), r.takeCheckpoints()
}

var (
	SamplesByRule = samplesByRule
	FindMount     = findMount
)
