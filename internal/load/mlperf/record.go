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
	{Name: "AU", Unit: "%"}, {Name: "AU of epochs", Unit: "%", SoFar: true},
	{Name: "training samples", Unit: "samples/s", SoFar: true}, {Name: "training data", Unit: "MB/s", SoFar: true},
	{Name: "wait for data", Unit: "ms"}, {Name: "accelerators"},
}

// togetherGauges are the further ones of a training on several VMs.
var togetherGauges = []interval.Gauge{{Name: "barrier wait", Unit: "ms"}, {Name: "barrier cost", Unit: "ms"},
	{Name: "AU of all VMs", Unit: "%", SoFar: true}, {Name: "training samples of all VMs", Unit: "samples/s", SoFar: true}}

// searchGauge is the further one of a search, the last of all: known at its end.
var searchGauge = interval.Gauge{Name: "accelerators kept busy", SoFar: true}

// checkpointTogetherGauges are the further ones of checkpoints of several VMs.
var checkpointTogetherGauges = []interval.Gauge{{Name: "checkpoint write of all VMs", Unit: "MB/s"}, {Name: "checkpoint read of all VMs", Unit: "MB/s"},
	{Name: "barrier wait", Unit: "ms"}}

var checkpointGauges = []interval.Gauge{{Name: "checkpoint write", Unit: "MB/s"}, {Name: "checkpoint read", Unit: "MB/s"}}

// record is what goroutines of a load write operations into.
type record struct {
	mu     sync.Mutex
	to     program.Recorder
	meter  *meter  // of a training
	sample float64 // mean bytes of a sample
	text   strings.Builder
	ended  []interval.GaugeValues // of the checkpoints that ended since the last look

	waits        int64 // for data, in nanoseconds, since the last look
	steps        int64
	busy, active int64 // at the last look
	au           float64

	search bool    // for a number of accelerators
	kept   float64 // which it has found, or a smaller one
	inStep bool    // with other VMs
	whole  result  // of all VMs, up to the last step
	now    passes  // since the last look
	total  passes
}

// passes are waits at the barrier between VMs, in nanoseconds: for other VMs, and where this VM came last for the network alone.
type passes struct {
	waited, cost int64
	count, last  int64
}

func (p *passes) add(nanos int64, last bool) {
	if p.waited, p.count = p.waited+nanos, p.count+1; last {
		p.cost, p.last = p.cost+nanos, p.last+1
	}
}

// means are those of the waits and of the costs in milliseconds.
func (p *passes) means() (wait, cost float64) {
	return float64(p.waited) / float64(p.count) / 1e6, float64(p.cost) / float64(p.last) / 1e6
}

// passed notes a step of all VMs.
func (r *record) passed(nanos int64, last bool, whole result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.add(nanos, last)
	r.total.add(nanos, last)
	r.whole = whole
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

// keep notes the number of accelerators that a search has found.
func (r *record) keep(accelerators int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = float64(accelerators)
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
		r.to.Gauge(r.takeCheckpoints(), end-1)
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
	if r.inStep {
		wait, cost := r.now.means()
		values = append(values, wait, cost, 100*r.whole.au, r.whole.samples)
		r.now = passes{}
	}
	if r.search {
		values = append(values, r.kept)
	}
	r.to.Gauge(values, end-1)
}

// set notes the gauges of a checkpoint that has just ended. They are those of the interval in which it did, so that means count each once.
func (r *record) set(values interval.GaugeValues) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, values)
}

// takeCheckpoints returns the means of the checkpoints that ended since the last look, as if they had ended as one.
func (r *record) takeCheckpoints() interval.GaugeValues {
	means := interval.UnknownGauges(len(r.to.Gauges))
	for gauge := range means {
		sum, count := 0.0, 0
		for _, values := range r.ended {
			if v := values[gauge]; !math.IsNaN(v) {
				sum, count = sum+v, count+1
			}
		}
		if count > 0 {
			means[gauge] = sum / float64(count)
		}
	}
	r.ended = nil
	return means
}

func (r *record) finish(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(at, at)
	r.to.Finish(at)
}

// sumOfAll describes the load of all VMs, as far as all of them came.
func (r *record) sumOfAll(threshold float64) {
	r.mu.Lock()
	t, p, inStep := r.whole, r.total, r.inStep
	r.mu.Unlock()
	if !inStep || p.count == 0 {
		return
	}
	wait, cost := p.means()
	network := "unknown, this VM never was the last"
	if p.last > 0 {
		network = fmt.Sprintf("%.3f ms in the %d steps for which this VM was the last", cost, p.last)
	}
	r.say("all VMs together: accelerators %d, AU %s (threshold %s), %.4g samples/s, %.4g MB/s; wait for other VMs %.3f ms per step; cost of the barrier: %s\n",
		t.accelerators, percent(t.au), percent(threshold), t.samples, t.samples*r.sample/1e6, wait, network)
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
