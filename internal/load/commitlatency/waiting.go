package commitlatency

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// samplesLeast is how many operations of each kind a median has at least, those of earlier intervals included. One client has one
// operation in flight, so that a stall hits one of them: it decides no median of five.
const samplesLeast = 5

// waiting derives the waits for network, database and disk from the operations of the current interval.
//
// They are differences of medians, not of means. An outage of the network for two seconds hits the one operation that is in flight,
// which may be a commit: a difference of means would count all of it as a wait for the disk.
type waiting struct {
	operations []string
	server     interval.GaugeValues
	slot       int64 // number of the interval on the axis
	begun      bool
	samples    [][]float64 // milliseconds by kind: all of the current interval, and of earlier ones up to samplesLeast in total
	fresh      []int       // how many of the samples are of the current interval
	least      int         // samples of a median
}

func newWaiting(operations []string, server interval.GaugeValues) *waiting {
	return &waiting{operations: operations, server: server, samples: make([][]float64, len(operations)), fresh: make([]int, len(operations)), least: samplesLeast}
}

// add counts an operation. The first one of an interval completes the one before.
func (w *waiting) add(out *program.Recorder, o program.Operation) {
	if slot := o.End / int64(out.Period()); slot != w.slot || !w.begun {
		w.complete(out)
		w.slot, w.begun = slot, true
		clear(w.fresh)
	}
	w.fresh[o.Kind]++
	list := append(w.samples[o.Kind], float64(o.Latency)/1e6)
	w.samples[o.Kind] = slices.Delete(list, 0, max(0, len(list)-max(samplesLeast, w.fresh[o.Kind])))
}

// complete notes the waits of all operations of the current interval.
func (w *waiting) complete(out *program.Recorder) {
	if w.begun {
		w.note(out, (w.slot+1)*int64(out.Period())-1)
	}
}

// end completes the last interval of a load. One with fewer operations than a median needs has that of those it did.
func (w *waiting) end(out *program.Recorder) {
	w.least = 1
	w.complete(out)
}

// median returns NaN as long as a kind has too few operations, or if it is not measured.
func (w *waiting) median(operation string) float64 {
	kind := slices.Index(w.operations, operation)
	if kind < 0 || len(w.samples[kind]) < w.least {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(w.samples[kind]))
	half := len(sorted) / 2
	return (sorted[half] + sorted[len(sorted)-1-half]) / 2
}

// note gives the interval of a time what is known of it. Where nothing completed, all is unknown.
func (w *waiting) note(out *program.Recorder, at int64) {
	values := interval.UnknownGauges(len(waits))
	if w.begun && w.slot == at/int64(out.Period()) {
		trip, async, commit := w.median(opRoundTrip), w.median(opAsync), w.median(opCommit)
		values = interval.GaugeValues{trip, async - trip, commit - async}
	}
	out.Gauge(slices.Concat(values, w.server), at)
}
