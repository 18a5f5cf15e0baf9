package document

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Workload is one start of one workload with its totals over all VMs.
type Workload struct {
	Name            string            `json:"workload"`
	Group           string            `json:"group"`
	Instance        int               `json:"instance"`
	Prefill         bool              `json:"prefill,omitempty"`
	Engines         []interval.Engine `json:"engines"` // distinct engines that drove it: section Engines of bundle.md
	VMs             int               `json:"vms"`
	FromNanos       int64             `json:"from_ns"`
	ToNanos         int64             `json:"to_ns"`
	CompletionNanos int64             `json:"completion_ns,omitempty"`
	Operations      uint64            `json:"operations"`
	Bytes           uint64            `json:"bytes"`
	OperationsRate  result.Number     `json:"operations_per_s"`
	BytesRate       result.Number     `json:"bytes_per_s"`
	Errors          map[string]uint64 `json:"errors,omitempty"`
	ErrorCount      uint64            `json:"error_count"`
	Due             uint64            `json:"due,omitempty"`
	NotIssued       uint64            `json:"not_issued,omitempty"`
	CPUNanos        int64             `json:"cpu_ns,omitempty"`
	// CPUCores is the mean over the time of the workload, all VMs together; null for loads of less than half a second.
	CPUCores     result.Number       `json:"cpu_cores"`
	CPUCoresMax  int                 `json:"cpu_cores_max,omitempty"` // CPUs available; 0: unknown
	DatabaseCPUs *DatabaseCPUs       `json:"database_cpus,omitempty"` // of the database of the load, if they are known
	StalledNanos int64               `json:"stalled_ns,omitempty"`
	Error        string              `json:"error,omitempty"`
	Start        int                 `json:"start"` // counts the starts of this workload from 1; 0 for a prefill
	Latency      []Latency           `json:"latency"`
	Gauges       []result.GaugeStats `json:"gauges"`
}

// engine is the first of its engines: all of a workload count the same kind of operations.
func (w *Workload) engine() interval.Engine {
	if len(w.Engines) == 0 {
		return interval.Engine{}
	}
	return w.Engines[0]
}

// Latency is the distribution of one direction in nanoseconds.
type Latency struct {
	Direction string `json:"direction"` // operation: "read", "write", "trim", or as the engine names it
	Kind      string `json:"kind"`      // "service", "response"
	Count     uint64 `json:"count"`
	result.Distribution
}

// coresTimeMin is the shortest load whose CPU time is shown in cores. The startup of a generator counts towards its CPU time but
// not towards the time of its load; in a shorter load it would look like busy cores.
const coresTimeMin = 500 * time.Millisecond

// counted reports whether its operations are: a prefill by a program that prints none, such as one of a database, has only its time.
func (w *Workload) counted() bool { return !w.Prefill || w.Operations > 0 || w.ErrorCount > 0 }

func workloads(run *Run, p *plan.Plan) []Workload {
	loads, cores := run.Summary.Loads, coresMax(&run.Manifest, p)
	list := make([]Workload, 0, len(loads))
	starts := map[string]int{}
	for i := range loads {
		l := &loads[i]
		w := Workload{
			Name: l.Workload, Group: l.Group, Instance: l.Instance, Prefill: l.Prefill, Engines: notNil(l.Engines), VMs: l.VMs,
			FromNanos: l.FromNanos, ToNanos: l.ToNanos, CompletionNanos: l.CompletionNanos,
			Operations: l.Total.Operations, Bytes: l.Total.Bytes, Errors: l.Total.Errors,
			ErrorCount: l.Total.ErrorCount(), Due: l.Due, NotIssued: l.NotIssued, CPUNanos: l.CPUNanos,
			StalledNanos: l.StalledNanos, Error: l.Error, Latency: []Latency{}, Gauges: notNil(l.Gauges),
			OperationsRate: result.Number(math.NaN()), BytesRate: result.Number(math.NaN()),
			CPUCores: result.Number(math.NaN()),
		}
		if !l.Prefill {
			starts[l.Workload]++
			w.Start = starts[l.Workload]
		}
		if nanos := l.ToNanos - l.FromNanos; nanos > 0 {
			seconds := float64(nanos) / float64(time.Second)
			w.OperationsRate = result.Number(float64(l.Total.Operations) / seconds)
			w.BytesRate = result.Number(float64(l.Total.Bytes) / seconds)
			if nanos >= coresTimeMin.Nanoseconds() {
				w.CPUCores = result.Number(float64(l.CPUNanos) / float64(nanos))
			}
		}
		w.CPUCoresMax, w.DatabaseCPUs = cores(l), databaseCPUs(&run.Manifest, p, l)
		for dir := range l.Directions {
			t := &l.Directions[dir]
			name := l.Engine().Operation(dir)
			unfinished := l.Unfinished(dir)
			add := func(kind string, h *stat.Histogram) {
				if h == nil || h.Count() == 0 {
					return
				}
				s := analysis.OperationStats(h, unfinished, t.Failed)
				w.Latency = append(w.Latency, Latency{Direction: name, Kind: kind, Count: s.Count, Distribution: s.Distribution})
			}
			add("service", t.Service)
			add("response", t.Response)
		}
		list = append(list, w)
	}
	return list
}

// coresMax returns how many cores a load can have used: those of this machine if VMs are its processes, otherwise those of its
// VMs.
func coresMax(m *result.Manifest, p *plan.Plan) func(l *result.LoadSummary) int {
	if m.Target.Provider == "local" {
		machine, _ := strconv.Atoi(m.Environment["cpus"]) // 0 if unknown
		return func(*result.LoadSummary) int { return machine }
	}
	ofVM := map[string]int{}
	for _, g := range p.Groups {
		ofVM[g.Name] = g.VCPUs
	}
	return func(l *result.LoadSummary) int { return ofVM[l.Group] * l.VMs }
}

// CoresText marks a value above the number of cores: load time and CPU time then cover different periods.
func (w *Workload) CoresText() string {
	text := draw.Quantity(float64(w.CPUCores), "")
	if w.CoresBeyond() {
		text += fmt.Sprintf(" of %d (!)", w.CPUCoresMax)
	}
	return text
}

func (w *Workload) CoresBeyond() bool {
	return w.CPUCoresMax > 0 && float64(w.CPUCores) > float64(w.CPUCoresMax)
}

// EngineText names the engines that drove it.
func (w *Workload) EngineText() string { return interval.EngineText(w.Engines) }

// GaugeTexts are its gauges, a line each. A prefill has values of few of them.
func (w *Workload) GaugeTexts() []string {
	var lines []string
	for _, g := range w.Gauges {
		if w.Prefill && math.IsNaN(float64(g.Mean)) {
			continue
		}
		if g.SoFar {
			lines = append(lines, fmt.Sprintf("%s: %s at the end", g.Name, draw.Quantity(float64(g.Mean), g.Unit)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: mean %s, from %s to %s", g.Name, draw.Quantity(float64(g.Mean), g.Unit),
			draw.Quantity(float64(g.Min), g.Unit), draw.Quantity(float64(g.Max), g.Unit)))
	}
	return lines
}

// Title names one start of a workload: "OLTP", "OLTP (start 2)", "OLTP (prefill)".
func (w *Workload) Title() string {
	text := w.Name
	if w.Prefill {
		text += " (prefill)"
	}
	if w.Start > 1 {
		text += fmt.Sprintf(" (start %d)", w.Start)
	}
	return text
}
