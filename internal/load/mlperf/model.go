package mlperf

import (
	"math"
	"slices"
	"time"
)

// model is a training workload of MLPerf Storage. Parameters are those of the rules v0.5 (V100) and v1.0 and v2.0 (A100, H100).
type model struct {
	name          string
	recordBytes   float64 // mean of one sample
	recordStdev   float64
	samplesInFile int
	readThreads   int // per accelerator
	threshold     float64
	accelerators  []accelerator
}

// accelerator is how a model runs on one type of accelerator.
type accelerator struct {
	name    string
	batch   int
	compute time.Duration // of one batch
}

const (
	epochsDefault = 5
	// prefetchDefault is how many batches each accelerator's readers hold ready or read, all together, unless there are more readers.
	prefetchDefault = 2
	acceleratorType = "a100"
)

var models = []model{
	{name: "unet3d", recordBytes: 146_600_628, recordStdev: 68_341_808, samplesInFile: 1, readThreads: 4, threshold: 0.90,
		accelerators: []accelerator{{"v100", 4, 1360400 * time.Microsecond}, {"a100", 7, 636 * time.Millisecond}, {"h100", 7, 323 * time.Millisecond}}},
	{name: "resnet50", recordBytes: 114_660.07, samplesInFile: 1251, readThreads: 8, threshold: 0.90,
		accelerators: []accelerator{{"v100", 64, 195 * time.Millisecond}, {"a100", 400, 435 * time.Millisecond}, {"h100", 400, 224 * time.Millisecond}}},
	{name: "cosmoflow", recordBytes: 2_828_486, recordStdev: 71_311, samplesInFile: 1, readThreads: 4, threshold: 0.70,
		accelerators: []accelerator{{"v100", 1, 9360 * time.Microsecond}, {"a100", 1, 5510 * time.Microsecond}, {"h100", 1, 3500 * time.Microsecond}}},
}

func modelNames() (names []string) {
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

func findModel(name string) (model, bool) {
	i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
	if i < 0 {
		return model{}, false
	}
	return models[i], true
}

func (m model) on(name string) (accelerator, bool) {
	i := slices.IndexFunc(m.accelerators, func(a accelerator) bool { return a.name == name })
	if i < 0 {
		return accelerator{}, false
	}
	return m.accelerators[i], true
}

// samplesPerSecond is what one accelerator processes if it never waits.
func (a accelerator) samplesPerSecond() float64 { return float64(a.batch) / a.compute.Seconds() }

// The rule for the size of a data set: it must be at least five times the memory of all hosts, and have 500 steps per epoch (100 in
// v0.5, whose accelerator is the V100).
const (
	memoryMultiple = 5
	stepsLeast     = 500
	stepsLeastV100 = 100
	// filesMax is the most files that the rules allow.
	filesMax = 128 * 1024
)

// samplesByRule is the least number of samples by that rule.
func samplesByRule(stepsPerEpoch, batch, accelerators int, memoryBytes int64, recordBytes float64) (samples int, byMemory bool) {
	steps, memory := stepsPerEpoch*batch*accelerators, int(math.Ceil(float64(memoryBytes)*memoryMultiple/recordBytes))
	return max(steps, memory), memory > steps
}

func stepsByRule(acceleratorName string) int {
	if acceleratorName == "v100" {
		return stepsLeastV100
	}
	return stepsLeast
}

// language is a model whose checkpoints v2.0 writes and reads.
type language struct {
	name                       string
	ranks                      int
	modelBytes, optimizerBytes int64
}

var languages = []language{
	{"llama3-8b", 8, 15e9, 90e9}, {"llama3-70b", 64, 130e9, 781e9},
	{"llama3-405b", 512, 755e9, 4533e9}, {"llama3-1t", 1024, 2571e9, 15426e9},
}

const checkpointsDefault = 10

func languageNames() (names []string) {
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

func findLanguage(name string) (language, bool) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
	if i < 0 {
		return language{}, false
	}
	return languages[i], true
}

// bytes is the size of one checkpoint.
func (l language) bytes() int64 { return l.modelBytes + l.optimizerBytes }
