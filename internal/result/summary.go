package result

import (
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
)

// How a run ended.
const (
	EndedCompleted   = "completed"
	EndedFailed      = "failed"
	EndedInterrupted = "interrupted"
	EndedAborted     = "aborted" // its controller died; sealed afterwards
)

// Summary is everything that reports read: evaluated results, windows, roll-ups. Seal writes it once, so that the report of a
// ten-hour run takes seconds.
type Summary struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // one sentence
	// Validity and why; empty in bundles that were written before it existed.
	Validity       Validity `json:"validity,omitempty"`
	ValidityReason string   `json:"validity_reason,omitempty"`
	Ended          string   `json:"ended"` // "completed", "failed", "interrupted", "aborted"
	// Refused: the run failed because a step was refused for safety.
	Refused  bool          `json:"refused,omitempty"`
	Duration int64         `json:"duration_ns"`
	Results  []Evaluated   `json:"results"`
	Loads    []LoadSummary `json:"workloads"`
	Windows  []Window      `json:"windows"` // the stretches between steps of the run phase, in order
	Findings Findings      `json:"findings,omitzero"`
	Caveats  []string      `json:"caveats,omitempty"`
	Phases   []Window      `json:"phases"`
	// Durations of operations; nil if the run had none.
	Durations *Durations `json:"durations,omitempty"`
	// Scaling is throughput against workers; nil if the run did not start the same load step by step.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Stages are those of loads that go through several by themselves.
	Stages []Stages `json:"stages,omitempty"`
	// Impacts are the costs of the events of the run phase, in their order.
	Impacts []Impact `json:"impacts,omitempty"`
}

// Evaluated is one result of the scenario with its data.
type Evaluated struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Type        string   `json:"type"`   // iops, bandwidth, latency, errors, active, generic, metric
	Unit        string   `json:"unit"`   // "IOPS", "B/s", "ns", "errors", "MHz", "kB/s", "" if unknown
	Source      string   `json:"source"` // source of the numbers, one sentence
	Aggregate   string   `json:"aggregate,omitempty"`
	Workload    string   `json:"workload,omitempty"` // whose traffic it is; "" for all of Group, and for counters
	Group       string   `json:"group,omitempty"`
	ReportGroup string   `json:"report_group,omitempty"`
	Overlay     string   `json:"overlay,omitempty"` // results of one overlay also share a chart, each from the start of its workload
	Hint        string   `json:"hint,omitempty"`
	Expected    *float64 `json:"expected,omitempty"`
	Full        float64  `json:"full,omitempty"` // value of 100 %, in Unit: for CPU in MHz, if the target reports both; else 0
	Bands       []Band   `json:"bands,omitempty"`
	Simulated   bool     `json:"simulated,omitempty"`
	Averages    bool     `json:"averages,omitempty"` // latencies that are means over a period, from counters: no single operation is known
	Unasked     bool     `json:"unasked,omitempty"`  // not requested by the scenario: shown because the target counts it
	Gauge       bool     `json:"gauge,omitempty"`    // what a generator measured besides its operations
	FromNanos   int64    `json:"from_ns"`            // the window that the scenario requests
	ToNanos     int64    `json:"to_ns"`
	Series      []Series `json:"series"`
	Stats       []Stats  `json:"stats"`             // of the whole window first, then per Window, in order
	Metrics     []Metric `json:"metrics,omitempty"` // report_metrics: Variability, Median, AnyFail …
	Missing     string   `json:"missing,omitempty"` // why data is missing
	Checks      []Check  `json:"checks,omitempty"`
	// WarmUps are those of its workload's starts, if the scenario leaves them out.
	WarmUps []WarmUp `json:"warm_ups,omitempty"`
}

// WarmUp is what a result leaves out of one start of a workload: from its start to when it was steady, or to the end of its ramp.
type WarmUp struct {
	Workload  string `json:"workload"`
	Instance  int    `json:"instance"`
	FromNanos int64  `json:"from_ns"`
	ToNanos   int64  `json:"to_ns"` // FromNanos if nothing is left out
	// Ramp: the load itself does not count its operations in that time.
	Ramp bool `json:"ramp,omitempty"`
	// Steady: it is steady from then on, until the next event.
	Steady bool `json:"steady"`
	// Why is one clause: why it is not steady as a whole, or why it is not known to have become steady.
	Why string `json:"why,omitempty"`
}

// Series is one line of a chart. Points are [seconds on the run's axis, value]; a gap is a point whose value is null.
type Series struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Kind   string            `json:"kind,omitempty"` // "service", "response" for latency
	// Statistic is the statistic that each point of a latency series has of the operations in its interval: "mean" (as X-Ray
	// draws it) or "p99". Empty for other types.
	Statistic string `json:"statistic,omitempty"`
	Points    Points `json:"points"`
	// ReducedFrom is the number of points before they were thinned out for drawing, 0 if none were removed. The smallest and the
	// largest value of each stretch were kept, so no peak is lost; Stats come from all points.
	ReducedFrom int `json:"reduced_from,omitempty"`
	// Pieces are the stretches of Points that are one measurement each, because the generator reported late: from a point to the next
	// one, of equal value, with none between them.
	Pieces []Piece `json:"pieces,omitempty"`
}

// Piece is a stretch of the run's axis for which one value was measured.
type Piece struct {
	FromSeconds float64 `json:"from_s"`
	ToSeconds   float64 `json:"to_s"`
}

// Points are the points of a Series in rising order of time. Value NaN is a gap and becomes null in JSON.
type Points []Point

// Point is a value at a time in seconds on the run's axis: the midpoint of the interval that it describes.
type Point struct{ Seconds, Value float64 }

// Band is a named range of values.
type Band struct {
	Name  string  `json:"name"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Metric is one of X-Ray's report metrics.
type Metric struct {
	Name   string `json:"name"`
	Series string `json:"series,omitempty"` // of a result with several series
	Value  Number `json:"value"`
	Unit   string `json:"unit"`
	Pass   *bool  `json:"pass,omitempty"`
	// XRay is X-Ray's value of this name, if it comes from other data: for latency, from the means of intervals.
	XRay *Number `json:"xray,omitempty"`
}

// Check is a threshold and its outcome. A check that could not be decided has not passed and has a Reason.
type Check struct {
	Text   string `json:"text"`
	Window string `json:"window,omitempty"`
	Event  string `json:"event,omitempty"` // whose cost it limits
	Value  Number `json:"value"`
	Unit   string `json:"unit"`
	// AtLeast: Value is a lower bound of the real value.
	AtLeast bool   `json:"at_least,omitempty"`
	Passed  bool   `json:"passed"`
	Reason  string `json:"reason,omitempty"` // why it could not be decided
	// Change is how Value compares with the pinned baseline, for thresholds against it.
	Change string `json:"change,omitempty"`
}

// Window is a named stretch of the run's axis.
type Window struct {
	Name      string `json:"name"`
	FromNanos int64  `json:"from_ns"`
	ToNanos   int64  `json:"to_ns"`
	// Before and After name the events that bound it.
	Before string `json:"begins_with,omitempty"`
	After  string `json:"ends_with,omitempty"`
}

// Clip returns the windows that overlap another, cut to it.
func Clip(windows []Window, to Window) []Window {
	var out []Window
	for _, w := range windows {
		w.FromNanos, w.ToNanos = max(w.FromNanos, to.FromNanos), min(w.ToNanos, to.ToNanos)
		if w.ToNanos > w.FromNanos {
			out = append(out, w)
		}
	}
	return out
}

// WarmUp returns what results leave out of a load, and their titles; nil if none does.
func (s *Summary) WarmUp(l *LoadSummary) (w *WarmUp, titles string) {
	var names []string
	for i := range s.Results {
		r := &s.Results[i]
		for j := range r.WarmUps {
			if one := &r.WarmUps[j]; one.Workload == l.Workload && one.Instance == l.Instance {
				w, names = one, append(names, r.Title)
			}
		}
	}
	return w, strings.Join(names, ", ")
}

// ExitCode is the exit code for the verdict.
func (s *Summary) ExitCode() int {
	switch {
	case s.Refused:
		return diag.ExitRefused
	case s.Verdict.Good():
		return diag.ExitPass
	case s.Verdict == Failed:
		return diag.ExitFailed
	}
	return diag.ExitUndecided
}

// Distribution summarizes values. An undefined statistic, such as a percentile of too few values, is NaN and null in JSON.
type Distribution struct {
	Mean   Number `json:"mean"`
	Median Number `json:"median"`
	P95    Number `json:"p95"`
	P99    Number `json:"p99"`
	P999   Number `json:"p999"`
	Max    Number `json:"max"`
	Min    Number `json:"min"`
	CV     Number `json:"cv"` // coefficient of variation: standard deviation by mean, a ratio
	// Unfinished counts, for latency, operations that never completed: they failed, were dropped, or were still waiting when
	// their load ended. They count as longer than all others.
	Unfinished uint64 `json:"unfinished"`
	// Untimed counts, for latency, completed operations whose latencies are not known for this time.
	Untimed uint64 `json:"untimed,omitempty"`
	// AtLeast lists the statistics, by JSON name, that are lower bounds because of these: "p99". The others are exact.
	AtLeast Bounds `json:"at_least"`
}

// Statistic returns a statistic by the name that thresholds and tables use: "mean", "p99.9".
func (d *Distribution) Statistic(name string) (v Number, ok bool) {
	switch name {
	case "mean":
		return d.Mean, true
	case "median":
		return d.Median, true
	case "p95":
		return d.P95, true
	case "p99":
		return d.P99, true
	case "p99.9":
		return d.P999, true
	case "max":
		return d.Max, true
	case "min":
		return d.Min, true
	case "cv":
		return d.CV, true
	}
	return 0, false
}

// Bounds names statistics, as JSON does, that are lower bounds.
type Bounds []string

// Has reports whether a statistic is a lower bound. The name may also be that of a threshold: "p99.9".
func (b Bounds) Has(statistic string) bool {
	return slices.Contains(b, strings.ReplaceAll(statistic, ".", ""))
}

// Stats are the statistics of one series over one window. Percentiles of latency come from merged histograms of operations; for
// other types, from the points.
type Stats struct {
	Window string `json:"window"` // "" is the whole result
	Series string `json:"series"`
	Kind   string `json:"kind,omitempty"` // as Series.Kind
	Count  uint64 `json:"count"`          // operations for latency, points otherwise
	Gaps   int    `json:"gaps,omitempty"` // points missing in the window
	Distribution
	// Intervals are the statistics of the drawn points; nil except for latency, where points and operations differ.
	Intervals *IntervalStats `json:"intervals,omitempty"`
	// WithBorders, for a window of latencies, includes the operations of intervals that cross its borders, which Distribution
	// omits; nil if there are none.
	WithBorders *Distribution `json:"with_borders,omitempty"`
	// Corrected are the percentiles of a closed loop, corrected for coordinated omission; nil except for latency of closed loops.
	Corrected *CorrectedStats `json:"corrected,omitempty"`
	// Bounds of the percentiles; nil except for latency of all VMs together, where enough was recorded to estimate them.
	Bounds *PercentileBounds `json:"percentile_bounds,omitempty"`
	// MeanBounds are two values between which the mean lies in 95 % of runs like this: of the same state and load. They come from how
	// far its points vary and correlate, and do not include what changes from run to run. Nil except for a rate of all VMs together
	// with at least ten points.
	MeanBounds *[2]Number `json:"mean_bounds,omitempty"`
	// Stall tells for how long no operation completed; nil if the generator does not record it, or the series is not of operations.
	Stall *Stall `json:"stall,omitempty"`
}

// MoveMean replaces the mean of points by that of what they stand for, and moves its bounds with it.
func (s *Stats) MoveMean(mean float64) {
	if b := s.MeanBounds; b != nil && s.Mean > 0 {
		for k := range b {
			b[k] *= Number(mean) / s.Mean
		}
	}
	s.Mean = Number(mean)
}

// PercentileBounds are two values for each percentile, between which that of the storage's latency lies in 95 % of runs like this: of
// the same state and load. They are order statistics, with as many independent operations as their variation from second to second
// shows. They do not include what changes from run to run. A bound is NaN if the operations are too few for it.
type PercentileBounds struct {
	Median [2]Number `json:"median"`
	P95    [2]Number `json:"p95"`
	P99    [2]Number `json:"p99"`
	P999   [2]Number `json:"p999"`
}

// Stall is the longest time in which no operation of a series completed although its load ran.
type Stall struct {
	LongestNanos int64 `json:"longest_ns"` // 0: shorter than ShortestNanos
	AtNanos      int64 `json:"at_ns"`      // when it began
	// ShortestNanos is the shortest stall that is recorded.
	ShortestNanos int64 `json:"shortest_ns"`
	// ZeroSeconds counts seconds of the run's axis without any completed operation.
	ZeroSeconds int `json:"zero_seconds"`
}

// CorrectedStats are the statistics as if a closed loop had continued to issue operations at its own pace, one per mean service
// time and pause, while an operation of 100 ms or longer blocked it.
type CorrectedStats struct {
	Mean    Number `json:"mean"`
	Median  Number `json:"median"`
	P95     Number `json:"p95"`
	P99     Number `json:"p99"`
	P999    Number `json:"p999"`
	AtLeast Bounds `json:"at_least"` // as in Distribution
}

// IntervalStats are the statistics of the means of intervals, each counting once however many operations it had. X-Ray computes
// its report metrics of latency from these.
type IntervalStats struct {
	Count  uint64 `json:"count"` // intervals
	Mean   Number `json:"mean"`
	Median Number `json:"median"`
	Max    Number `json:"max"`
	Min    Number `json:"min"`
	CV     Number `json:"cv"`
}

// GaugeStats is a gauge of a load over all its intervals and VMs; the mean is by time, or of the last values of the VMs for a
// gauge so far.
type GaugeStats struct {
	interval.Gauge
	Mean Number `json:"mean"`
	Min  Number `json:"min"`
	Max  Number `json:"max"`
}

// LoadSummary is one start of one workload. Engines are the engines that actually drove it, all distinct ones of its VMs.
type LoadSummary struct {
	Workload  string            `json:"workload"`
	Group     string            `json:"group"`
	Instance  int               `json:"instance"`
	Prefill   bool              `json:"prefill,omitempty"`
	Engines   []interval.Engine `json:"engines"`
	VMs       int               `json:"vms"`
	FromNanos int64             `json:"from_ns"`
	ToNanos   int64             `json:"to_ns"`
	// CompletionNanos is the time to complete of a size-bound workload: from the start to the last operation.
	// 0: time-bound.
	CompletionNanos int64             `json:"completion_ns,omitempty"`
	Total           interval.Traffic  `json:"total"`
	Directions      interval.Traffics `json:"dirs"`
	Gauges          []GaugeStats      `json:"gauges,omitempty"`
	Due             uint64            `json:"due,omitempty"`
	NotIssued       uint64            `json:"not_issued,omitempty"`
	// WaitingAtEnd are due operations that had not been issued when the load ended.
	WaitingAtEnd uint64 `json:"waiting_at_end,omitempty"`
	CPUNanos     int64  `json:"cpu_ns,omitempty"`
	StalledNanos int64  `json:"stalled_ns,omitempty"`
	Error        string `json:"error,omitempty"`
	// Fingerprint identifies its raw samples: two runs never have the same. Empty if it has too few of them.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Engine is one of Engines, which differ by machine and not by workload. It is zero if none is known.
func (l *LoadSummary) Engine() interval.Engine {
	if len(l.Engines) == 0 {
		return interval.Engine{}
	}
	return l.Engines[0]
}

// Noted returns the texts of the notes of its engines with one code, without duplicates.
func (l *LoadSummary) Noted(code interval.NoteCode) []string {
	var texts []string
	for _, e := range l.Engines {
		for _, n := range e.Noted(code) {
			if !slices.Contains(texts, n.Text) {
				texts = append(texts, n.Text)
			}
		}
	}
	return texts
}

// Unfinished counts operations of one kind that never completed. Operations that were due and never issued have no kind: they are
// assumed to have the same mix as the issued ones.
func (l *LoadSummary) Unfinished(operation int) uint64 {
	t := &l.Directions[operation]
	issued, all := t.Operations+t.ErrorCount(), l.Total.Operations+l.Total.ErrorCount()
	if all == 0 {
		return 0
	}
	return t.ErrorCount() + uint64(math.Round(float64(l.NotIssued+l.WaitingAtEnd)*float64(issued)/float64(all)))
}
