package result

import (
	"math"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
)

// Verdict of a run as a whole.
type Verdict string

const (
	Pass      Verdict = "PASS"
	Failed    Verdict = "FAIL"
	Undecided Verdict = "UNKNOWN"
)

// Ended says how a run came to its end.
const (
	EndedCompleted   = "completed"
	EndedFailed      = "failed"
	EndedInterrupted = "interrupted"
	EndedAborted     = "aborted" // its controller died; sealed afterwards
)

// Summary is everything that reports read: evaluated results, windows, roll-ups. It is written once, by Seal, so that
// a report of ten hours costs seconds.
type Summary struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // one sentence
	Ended   string  `json:"ended"`  // "completed", "failed", "interrupted", "aborted"
	// Refused: the run failed because a step was refused for safety.
	Refused  bool          `json:"refused,omitempty"`
	Duration int64         `json:"duration_ns"`
	Results  []Evaluated   `json:"results"`
	Loads    []LoadSummary `json:"workloads"`
	Windows  []Window      `json:"windows"` // the stretches between steps of the run phase, in order
	Findings Findings      `json:"findings,omitzero"`
	Caveats  []string      `json:"caveats,omitempty"`
	Phases   []Window      `json:"phases"`
	// Durations of operations; nil where there was none.
	Durations *Durations `json:"durations,omitempty"`
}

// Evaluated is one result of the scenario with its data.
type Evaluated struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Type        string   `json:"type"`   // iops, bandwidth, latency, errors, active, generic, metric
	Unit        string   `json:"unit"`   // "IOPS", "B/s", "ns", "errors", "MHz", "kB/s", "" when not known
	Source      string   `json:"source"` // where the numbers come from, one sentence
	Aggregate   string   `json:"aggregate,omitempty"`
	ReportGroup string   `json:"report_group,omitempty"`
	Hint        string   `json:"hint,omitempty"`
	Expected    *float64 `json:"expected,omitempty"`
	Full        float64  `json:"full,omitempty"` // what 100 % is, in Unit: of CPU in MHz, when the target told both; else 0
	Bands       []Band   `json:"bands,omitempty"`
	Simulated   bool     `json:"simulated,omitempty"`
	Unasked     bool     `json:"unasked,omitempty"` // no result of the scenario: shown because the target counts it
	FromNanos   int64    `json:"from_ns"`           // the window that the scenario asked for
	ToNanos     int64    `json:"to_ns"`
	Series      []Series `json:"series"`
	Stats       []Stats  `json:"stats"`             // of the whole window first, then per Window, in order
	Metrics     []Metric `json:"metrics,omitempty"` // report_metrics: Variability, Median, AnyFail …
	Missing     string   `json:"missing,omitempty"` // why data is missing
	Checks      []Check  `json:"checks,omitempty"`
}

// Series is one line of a chart. Points are [seconds on the run's axis, value]; a gap is a point whose value is null.
type Series struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Kind   string            `json:"kind,omitempty"` // "service", "response" for latency
	// Statistic is what each point of a latency series says of the operations in its interval: "mean" (as X-Ray draws
	// it) or "p99". Empty for every other type.
	Statistic string `json:"statistic,omitempty"`
	Points    Points `json:"points"`
	// ReducedFrom is the number of points before they were thinned out for drawing, 0 when these are all. Of each
	// stretch the smallest and the largest value were kept, so no peak is lost; Stats come from all points.
	ReducedFrom int `json:"reduced_from,omitempty"`
}

// Points are the points of a Series in rising order of time. Value NaN is a gap and becomes null in JSON.
type Points []Point

// Point is a value at a time in seconds on the run's axis: the middle of the interval that it tells of.
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
	// XRay is what X-Ray shows under this name, where that is of other data: for latency, of the means of intervals.
	XRay *Number `json:"xray,omitempty"`
}

// Check is a threshold and its outcome. A check that could not be decided has not passed and has a Reason.
type Check struct {
	Text   string `json:"text"`
	Window string `json:"window,omitempty"`
	Value  Number `json:"value"`
	Unit   string `json:"unit"`
	// AtLeast: the real value is Value or larger, by how much is not known.
	AtLeast bool   `json:"at_least,omitempty"`
	Passed  bool   `json:"passed"`
	Reason  string `json:"reason,omitempty"` // why it could not be decided
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

// ExitCode is what the verdict stands for.
func (s *Summary) ExitCode() int {
	switch {
	case s.Refused:
		return diag.ExitRefused
	case s.Verdict == Pass:
		return diag.ExitPass
	case s.Verdict == Failed:
		return diag.ExitFailed
	}
	return diag.ExitUndecided
}

// Distribution sums up values. What has no meaning, such as a percentile of too few, is NaN and null in JSON.
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
	// AtLeast names the statistics, as JSON does, that are lower bounds because of them: "p99". The others are exact.
	AtLeast []string `json:"at_least"`
}

// Stats are the statistics of one series over one window. Percentiles of latency come from merged histograms of
// operations; those of every other type from the points.
type Stats struct {
	Window string `json:"window"` // "" is the whole result
	Series string `json:"series"`
	Kind   string `json:"kind,omitempty"` // as Series.Kind
	Count  uint64 `json:"count"`          // operations for latency, points otherwise
	Gaps   int    `json:"gaps,omitempty"` // points missing in the window
	Distribution
	// Intervals are those of the points that are drawn; nil but for latency, where points and operations differ.
	Intervals *IntervalStats `json:"intervals,omitempty"`
	// WithBorders has, for a window of latencies, also the operations of intervals that reach over its borders, which Distribution
	// leaves out; nil where there is none.
	WithBorders *Distribution `json:"with_borders,omitempty"`
	// Corrected are the percentiles of a closed loop, corrected for coordinated omission; nil but for latency of closed loops.
	Corrected *CorrectedStats `json:"corrected,omitempty"`
}

// A closed loop hung where a corrected percentile is at least hungFactor times the one as measured, which scatter alone does not
// make of it, and at least hungNanos: hits of a cache and reads of a disk differ by more than the factor too, and no operation hangs.
const (
	hungFactor = 2.0
	HungNanos  = 100e6
)

// Hung reports whether a percentile of a closed loop, as measured and corrected in nanoseconds, hides that the loop hung.
func Hung(measured, corrected float64) bool {
	return corrected >= hungFactor*measured && corrected >= HungNanos
}

// CorrectedStats are statistics as they would be if a closed loop had gone on to issue operations at its own pace, one per mean
// service time and pause, while one of HungNanos or longer held it up.
type CorrectedStats struct {
	Mean    Number   `json:"mean"`
	Median  Number   `json:"median"`
	P95     Number   `json:"p95"`
	P99     Number   `json:"p99"`
	P999    Number   `json:"p999"`
	AtLeast []string `json:"at_least"` // as in Distribution
}

// IntervalStats are the statistics of the means of intervals, each counting once however many operations it had. X-Ray's
// report metrics of latency are of these.
type IntervalStats struct {
	Count  uint64 `json:"count"` // intervals
	Mean   Number `json:"mean"`
	Median Number `json:"median"`
	Max    Number `json:"max"`
	Min    Number `json:"min"`
	CV     Number `json:"cv"`
}

// GaugeStats is a gauge of a load over all its intervals and VMs; the mean is by time.
type GaugeStats struct {
	interval.Gauge
	Mean Number `json:"mean"`
	Min  Number `json:"min"`
	Max  Number `json:"max"`
}

// LoadSummary is one start of one workload. Engines are what really drove it, all distinct ones of its VMs.
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
}

// Engine is one of Engines; they differ by machine, not by what is done. It is zero where none is known.
func (l *LoadSummary) Engine() interval.Engine {
	if len(l.Engines) == 0 {
		return interval.Engine{}
	}
	return l.Engines[0]
}

// Unfinished counts operations of one kind that never completed. Those that were due and never issued have no kind: they are
// taken to be as those that were issued.
func (l *LoadSummary) Unfinished(operation int) uint64 {
	t := &l.Directions[operation]
	issued, all := t.Operations+t.ErrorCount(), l.Total.Operations+l.Total.ErrorCount()
	if all == 0 {
		return 0
	}
	return t.ErrorCount() + uint64(math.Round(float64(l.NotIssued+l.WaitingAtEnd)*float64(issued)/float64(all)))
}
