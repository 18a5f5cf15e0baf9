package mlperf

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// Operations of a training, and of checkpoints.
const (
	opSample = 0
	opFile   = 1 // of the prefill
	opWrite  = 0
	opRead   = 1
)

var (
	trainingOperations   = []string{"sample", "file"}
	checkpointOperations = []string{"checkpoint write", "checkpoint read"}
)

// Gauges of a training.
const (
	gaugeAU = iota
	gaugeEpochs
	gaugeSamples
	gaugeRate
	gaugeWait
	gaugeAccelerators
	gaugeCount
)

var trainingGauges = []interval.Gauge{
	{Name: "AU", Unit: "%"}, {Name: "AU of epochs", Unit: "%"}, {Name: "training samples", Unit: "samples/s"}, {Name: "training data", Unit: "MB/s"},
	{Name: "wait for data", Unit: "ms"}, {Name: "accelerators"},
}

var checkpointGauges = []interval.Gauge{{Name: "checkpoint write", Unit: "MB/s"}, {Name: "checkpoint read", Unit: "MB/s"}, {Name: "checkpoints"}}

// record is what goroutines of a load write operations into.
type record struct {
	mu     sync.Mutex
	to     program.Recorder
	meter  *meter  // of a training
	sample float64 // mean bytes of a sample
	text   strings.Builder
	values interval.GaugeValues // of a checkpoint load

	waits        int64 // for data, in nanoseconds, since the last look
	steps        int64
	busy, active int64 // at the last look
	au           float64
}

func (r *record) add(o program.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to.Add(o)
}

// waited notes how long a step waited for its data.
func (r *record) waited(nanos int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits, r.steps = r.waits+nanos, r.steps+1
}

func (r *record) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.text, format, args...)
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "unknown"
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

// look notes the gauges of the interval that ends at a time, and delivers it.
func (r *record) look(now, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(now, end)
	r.to.Release(end)
}

func (r *record) gauge(now, end int64) {
	switch {
	case r.to.Workload.Prefill:
		return
	case r.meter == nil:
		r.to.Gauge(append(interval.GaugeValues(nil), r.values...), end-1)
		return
	}
	busy, active := r.meter.look(now)
	if active > r.active {
		r.au = 100 * float64(busy-r.busy) / float64(active-r.active)
	} else {
		r.au = math.NaN()
	}
	values := make(interval.GaugeValues, gaugeCount)
	values[gaugeAU], values[gaugeWait] = r.au, math.NaN()
	if r.steps > 0 {
		values[gaugeWait] = float64(r.waits) / float64(r.steps) / 1e6
	}
	t := r.meter.sofar()
	values[gaugeEpochs], values[gaugeSamples], values[gaugeRate] = 100*t.au, t.samples, t.samples*r.sample/1e6
	values[gaugeAccelerators] = float64(t.accelerators)
	r.busy, r.active, r.waits, r.steps = busy, active, 0, 0
	r.to.Gauge(values, end-1)
}

func (r *record) finish(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(at, at)
	r.to.Finish(at)
}

func unknown(count int) interval.GaugeValues {
	values := make(interval.GaugeValues, count)
	for i := range values {
		values[i] = math.NaN()
	}
	return values
}

// sum describes the whole load.
func (r *record) sum(t result, threshold float64) {
	if t.steps == 0 {
		r.say("no complete step\n")
		return
	}
	verdict := "unknown"
	switch {
	case math.IsNaN(t.au):
	case t.au >= threshold:
		verdict = "met"
	default:
		verdict = "missed"
	}
	r.say("accelerators %d, steps %d, AU %s (threshold %s: %s), %.4g samples/s, %.4g MB/s (%.4g MiB/s, as DLIO's \"MB/second\")\n", t.accelerators, t.steps,
		percent(t.au), percent(threshold), verdict, t.samples, t.samples*r.sample/1e6, t.samples*r.sample/(1<<20))
}
