package compare

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// Figures of workloads that are not only printed.
const (
	figureRate       = "operations per second"
	figureCompletion = "time to complete"
	figureErrors     = "errors"
	figureDropped    = "not issued"
)

// comparedLoads pairs starts of workloads by name, number of the start and prefill or not.
func comparedLoads(documents []*document.Document) []Load {
	var titles []string
	loads := map[string][]*document.Workload{}
	for i, d := range documents {
		for j := range d.Workloads {
			w := &d.Workloads[j]
			if loads[w.Title()] == nil {
				titles = append(titles, w.Title())
				loads[w.Title()] = make([]*document.Workload, len(documents))
			}
			loads[w.Title()][i] = w
		}
	}
	list := []Load{}
	for _, title := range titles {
		prefill := slices.ContainsFunc(loads[title], func(w *document.Workload) bool { return w != nil && w.Prefill })
		list = append(list, Load{Workload: title, Figures: loadFigures(loads[title]), PerCPU: perCPU(loads[title]), prefill: prefill})
	}
	return list
}

func loadFigures(loads []*document.Workload) []Figure {
	get := func(name, unitName string, f func(*document.Workload) result.Number) Figure {
		values := make([]result.Number, len(loads))
		for i, w := range loads {
			values[i] = result.Number(math.NaN())
			if w != nil {
				values[i] = f(w)
			}
		}
		return figure(name, unitName, values, nil)
	}
	list := []Figure{
		get(figureRate, rateUnitOf(loads), func(w *document.Workload) result.Number { return w.OperationsRate }),
		get("bandwidth", "B/s", func(w *document.Workload) result.Number { return w.BytesRate }),
		get(figureCompletion, "ns", func(w *document.Workload) result.Number {
			if w.CompletionNanos == 0 {
				return result.Number(math.NaN())
			}
			return result.Number(w.CompletionNanos)
		}),
		get(figureErrors, "errors", func(w *document.Workload) result.Number { return result.Number(w.ErrorCount) }),
		get(figureDropped, "operations", func(w *document.Workload) result.Number { return result.Number(w.NotIssued) }),
		get("CPU", "cores", func(w *document.Workload) result.Number {
			if w.CoresBeyond() {
				return result.Number(math.NaN()) // a ratio would have no meaning
			}
			return w.CPUCores
		}),
	}
	for _, g := range gaugesOf(loads) {
		list = append(list, get(g.Name, g.Unit, func(w *document.Workload) result.Number {
			for _, own := range w.Gauges {
				if own.Gauge == g {
					return own.Mean
				}
			}
			return result.Number(math.NaN())
		}))
	}
	for _, direction := range operationsOf(loads) {
		for _, kind := range []string{"service", "response"} {
			for _, name := range latencyStatistics {
				values, atLeast := make([]result.Number, len(loads)), make([]bool, len(loads))
				for i, w := range loads {
					values[i] = result.Number(math.NaN())
					if l := latencyOf(w, direction, kind); l != nil {
						values[i], _ = l.Distribution.Statistic(name)
						atLeast[i] = l.AtLeast.Has(name)
					}
				}
				f := figure(direction+" "+kind+" time, "+name, "ns", values, atLeast)
				f.percentile = name != "mean"
				f.judged = f.percentile && (kind == "response" || !responds(loads, direction))
				list = append(list, f)
			}
		}
	}
	return present(list)
}

// responds reports whether any run measured the response time of an operation.
func responds(loads []*document.Workload, direction string) bool {
	return slices.ContainsFunc(loads, func(w *document.Workload) bool { return latencyOf(w, direction, "response") != nil })
}

// latencyOf is the latency of one kind of operation; nil if the run lacks the load or the load has none.
func latencyOf(w *document.Workload, direction, kind string) *document.Latency {
	if w == nil {
		return nil
	}
	for i := range w.Latency {
		if w.Latency[i].Direction == direction && w.Latency[i].Kind == kind {
			return &w.Latency[i]
		}
	}
	return nil
}

// rateUnitOf is the unit of operations per second of a load in several runs.
func rateUnitOf(loads []*document.Workload) string {
	for _, w := range loads {
		if w != nil && len(w.Engines) > 0 {
			return w.Engines[0].RateUnit()
		}
	}
	return interval.Engine{}.RateUnit()
}

// operationsOf lists the operations that have latencies in any of the runs, I/O operations first.
func operationsOf(loads []*document.Workload) []string {
	list := []string{"read", "write", "trim"}
	for _, w := range loads {
		for i := 0; w != nil && i < len(w.Latency); i++ {
			if !slices.Contains(list, w.Latency[i].Direction) {
				list = append(list, w.Latency[i].Direction)
			}
		}
	}
	return list
}

func gaugesOf(loads []*document.Workload) []interval.Gauge {
	var list []interval.Gauge
	for _, w := range loads {
		for i := 0; w != nil && i < len(w.Gauges); i++ {
			if !slices.Contains(list, w.Gauges[i].Gauge) {
				list = append(list, w.Gauges[i].Gauge)
			}
		}
	}
	return list
}

// latencyStatistics are those of the latency of a workload that are compared.
var latencyStatistics = []string{"mean", "median", "p99", "p99.9"}

// present drops figures that no run has.
func present(list []Figure) []Figure {
	out := list[:0]
	for _, f := range list {
		for _, v := range f.Values {
			if !math.IsNaN(float64(v)) {
				out = append(out, f)
				break
			}
		}
	}
	return out
}
