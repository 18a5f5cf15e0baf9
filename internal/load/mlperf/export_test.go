package mlperf

// Demand returns what one accelerator takes at full use: samples and megabytes per second.
func Demand(modelName, accelerator string) (samples, megabytes float64) {
	m, _ := findModel(modelName)
	a, _ := m.on(accelerator)
	return a.samplesPerSecond(), a.samplesPerSecond() * m.recordBytes / 1e6
}

var (
	SamplesByRule = samplesByRule
	FindMount     = findMount
)
