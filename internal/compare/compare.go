// Package compare puts several runs side by side: it aligns them in time, pairs their results and workloads, computes ratios and
// differences, and lists the factors and findings that may explain them. It draws nothing; package report does.
//
//	runs ──Runs, OfSets──▶ Comparison ──Judge──▶ Gate
//	runs of one scenario ──OfHistory──▶ Trend
//
//	compare.go, align.go    the Comparison: runs on one axis, results in pairs
//	loads.go, largest.go    figures of workloads; the largest differences
//	percpu.go               throughput for each CPU of a database
//	costs.go, scaling.go    what events cost; where throughput stops growing
//	factors.go, findings.go what differs between runs besides their numbers; what the audit found in them
//	numbers.go, sets.go     two sets of runs: the numbers, and whether each is different
//	shift.go                numbers that may be 0, compared by difference
//	headline.go             the sentence that answers
//	gate.go, trend.go       conditions that fail a comparison; one number over time
package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// Format is the version of the JSON. It is raised when a program that reads the previous version could misread the new
// one.
const Format = 1

// RunsMax bounds the runs of one comparison: a page has no more colours that can be distinguished.
const RunsMax = 8

// Options select how runs are compared.
type Options struct {
	// AlignAt names the event that is zero on the common axis: a step ("nodes.PowerOff"), or the text of an
	// annotation. Empty: the start of the run phase.
	AlignAt string
}

// Comparison is several runs side by side; the first is the base of every ratio and difference. Its JSON is stable.
type Comparison struct {
	Format int `json:"comparison_format"`
	// Headline answers whether the runs are different.
	Headline string `json:"headline"`
	AlignAt  string `json:"align_at"`
	Runs     []Run  `json:"runs"`
	Sets     *Sets  `json:"sets"` // null for a comparison of single runs
	Gate     *Gate  `json:"gate"` // null without conditions
	// Largest are the largest differences, at most five, the largest first.
	Largest  []Difference `json:"largest_differences"`
	Warnings []string     `json:"warnings"`
	Findings []Finding    `json:"findings"` // all findings of all runs
	Factors  []Factor     `json:"factors"`  // only those that differ
	Results  []Result     `json:"results"`
	Loads    []Load       `json:"workloads"`
	Costs    []Cost       `json:"event_costs"` // of events that both sides have
	Scaling  []Shift      `json:"scaling"`     // of the fits of runs that grow; empty if a side has none

	Rehearsal *document.Document `json:"-"` // of a comparison of rehearsals: the first
}

// Run is one run of a Comparison.
type Run struct {
	Run            string          `json:"run"`
	Name           string          `json:"name"` // "A", "B", … in tables and charts
	Label          string          `json:"label,omitempty"`
	Scenario       string          `json:"scenario"`
	Title          string          `json:"title"` // display name of the scenario
	Created        time.Time       `json:"created"`
	Verdict        result.Verdict  `json:"verdict"`
	Reason         string          `json:"reason"`
	Validity       result.Validity `json:"validity"`
	ValidityReason string          `json:"validity_reason"`
	ZeroNanos      int64           `json:"zero_ns"` // zero of the common axis, on the axis of this run
	Marks          []document.Mark `json:"marks"`   // on the common axis
	Simulated      bool            `json:"simulated,omitempty"`
}

// Factor is a property that differs between runs and may explain different numbers.
type Factor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // one per run; "" if a run lacks it
}

// Result is one chart of all runs.
type Result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Type  string `json:"type"`
	Unit  string `json:"unit"`
	Lines []Line `json:"lines"`
	Rows  []Row  `json:"rows"`

	unasked bool // not a result of the scenario
}

// Unasked reports whether the scenario did not request the result: the target counts it.
func (r *Result) Unasked() bool { return r.unasked }

// Line is one series of one run on the common axis.
type Line struct {
	Run int `json:"run"` // index of Runs
	result.Series
}

// Row is one series over one window in all runs.
type Row struct {
	Window  string   `json:"window"`
	Series  string   `json:"series"`
	Kind    string   `json:"kind,omitempty"`
	Figures []Figure `json:"figures"`

	stats []*document.Statistic // one per run; nil if a run lacks it
}

// Load is one start of one workload in all runs.
type Load struct {
	Workload string   `json:"workload"`
	Figures  []Figure `json:"figures"`
	PerCPU   []Figure `json:"per_cpu"` // of its database; empty if that says no more than its throughput

	prefill bool
}

// Figure is one number in all runs. Ratios and Differences are against the first run; null if a run lacks it.
type Figure struct {
	Name        string          `json:"name"`
	Unit        string          `json:"unit"`
	Values      []result.Number `json:"values"`
	Ratios      []result.Number `json:"ratios"`
	Differences []result.Number `json:"differences"`
	// AtLeast marks values that are lower bounds; they have no ratio and no difference. Empty if there are none.
	AtLeast []bool `json:"at_least"`

	percentile bool // from the buckets of a histogram
	judged     bool // of a latency: whether B is different
}

// Runs compares single runs. It returns an error for fewer than two runs, an unfinished run, a rehearsal and a full run together, and
// a run without the event of AlignAt.
func Runs(runs []*document.Run, o Options) (*Comparison, error) {
	if len(runs) < 2 || len(runs) > RunsMax {
		return nil, &diag.Error{Code: "compare-count", Exit: diag.ExitUsage,
			Message: fmt.Sprintf("compare %d runs", len(runs)), Hint: fmt.Sprintf("name two to %d runs", RunsMax)}
	}
	names := make([]string, len(runs))
	for i := range runs {
		names[i] = string(rune('A' + i))
	}
	c, documents, err := build(runs, names, o)
	if err != nil {
		return nil, err
	}
	c.Largest = largestDifferences(documents, c)
	c.Costs, c.Scaling = comparedCosts(documents, 1), comparedScaling(documents, 1)
	c.Headline = singleHeadline(c)
	return c, nil
}

// build compares runs of these names, except for what depends on whether they are single runs or sets.
func build(runs []*document.Run, names []string, o Options) (*Comparison, []*document.Document, error) {
	if err := comparable(runs); err != nil {
		return nil, nil, err
	}
	c := &Comparison{Format: Format, AlignAt: o.AlignAt}
	documents := make([]*document.Document, len(runs))
	for i, run := range runs {
		d := document.Build(run)
		documents[i] = d
		zero, err := zeroOf(d, o.AlignAt)
		if err != nil {
			return nil, nil, err
		}
		r := Run{Run: d.Run, Name: names[i], Label: d.Label, Scenario: d.Scenario.Name, Title: document.DisplayName(d), Created: d.Created,
			Verdict: d.Verdict, Reason: d.Reason, Validity: d.Validity, ValidityReason: d.ValidityReason,
			ZeroNanos: zero, Marks: slices.Clone(d.Marks), Simulated: d.Target.Simulated}
		for j := range r.Marks {
			r.Marks[j].AtNanos -= zero
			if r.Marks[j].EndNano != 0 {
				r.Marks[j].EndNano -= zero
			}
		}
		c.Runs = append(c.Runs, r)
	}
	if documents[0].Rehearsal != nil {
		c.Rehearsal = documents[0]
	}
	c.Factors = factors(documents)
	c.Warnings = comparisonWarnings(documents, names)
	c.Results = comparedResults(documents, c.Runs)
	c.Loads = comparedLoads(documents)
	c.Findings = append(copies(runs, names), comparedFindings(documents, names)...)
	return c, documents, nil
}

func comparable(runs []*document.Run) error {
	for _, run := range runs {
		if run.Going > 0 {
			return &diag.Error{Code: "compare-running", Exit: diag.ExitData,
				Message: fmt.Sprintf("compare %q: the run is still running", run.Manifest.Run),
				Hint:    "results are available when it ends; bragg report shows its progress"}
		}
	}
	for _, run := range runs[1:] {
		if (run.Manifest.Rehearsal == nil) == (runs[0].Manifest.Rehearsal == nil) {
			continue
		}
		short, full := run, runs[0]
		if short.Manifest.Rehearsal == nil {
			short, full = full, short
		}
		return &diag.Error{Code: "compare-rehearsal", Exit: diag.ExitData,
			Message: fmt.Sprintf("compare %q with %q: the first is a rehearsal, the second a full run", short.Manifest.Run, full.Manifest.Run),
			Hint:    "a rehearsal has less data, fewer VMs and no steady state; compare rehearsals with rehearsals",
		}
	}
	return nil
}

// comparedResults pairs results by name, in the order of the first run that has them.
func comparedResults(documents []*document.Document, runs []Run) []Result {
	list := []Result{}
	index := map[string]int{}
	for i, d := range documents {
		for j := range d.Results {
			r := &d.Results[j]
			at, known := index[r.Name]
			if !known {
				at = len(list)
				index[r.Name] = at
				list = append(list, Result{Name: r.Name, Title: r.Heading(), Type: r.Type, Unit: r.Unit, Lines: []Line{},
					unasked: r.Unasked})
			}
			for _, s := range r.Series {
				s.Points = shifted(s.Points, runs[i].ZeroNanos)
				list[at].Lines = append(list[at].Lines, Line{Run: i, Series: s})
			}
		}
	}
	for i := range list {
		list[i].Rows = comparedRows(documents, list[i].Name, list[i].Unit)
	}
	return list
}

func shifted(points result.Points, zeroNanos int64) result.Points {
	out := make(result.Points, len(points))
	for i, p := range points {
		out[i] = result.Point{Seconds: p.Seconds - float64(zeroNanos)/float64(time.Second), Value: p.Value}
	}
	return out
}

type rowKey struct{ window, series, kind string }

// comparedRows pairs statistics by window, series and kind. A result that has one series in every run is paired even
// when its name differs.
func comparedRows(documents []*document.Document, name, unitName string) []Row {
	var keys []rowKey
	values := map[rowKey][]*document.Statistic{}
	for i, d := range documents {
		for j := range d.Results {
			if d.Results[j].Name != name {
				continue
			}
			only := onlySeries(&d.Results[j])
			for k := range d.Results[j].Rows {
				s := &d.Results[j].Rows[k]
				key := rowKey{s.Window, s.Series, s.Kind}
				if only && i > 0 {
					key = pairedKey(keys, key)
				}
				if values[key] == nil {
					keys = append(keys, key)
					values[key] = make([]*document.Statistic, len(documents))
				}
				values[key][i] = s
			}
		}
	}
	list := []Row{}
	for _, key := range keys {
		list = append(list, Row{Window: key.window, Series: key.series, Kind: key.kind,
			Figures: statisticFigures(values[key], unitName), stats: values[key]})
	}
	return list
}

func onlySeries(r *document.Result) bool {
	names := map[string]bool{}
	for _, s := range r.Series {
		names[s.Name] = true
	}
	return len(names) == 1
}

// pairedKey returns the key of the first run for the same window and kind, when there is exactly one.
func pairedKey(keys []rowKey, key rowKey) rowKey {
	found, n := key, 0
	for _, k := range keys {
		if k.window == key.window && k.kind == key.kind {
			found, n = k, n+1
		}
	}
	if n == 1 {
		return found
	}
	return key
}

func statisticFigures(rows []*document.Statistic, unitName string) []Figure {
	get := func(name, unitName string, f func(*document.Statistic) result.Number) Figure {
		values, atLeast := make([]result.Number, len(rows)), make([]bool, len(rows))
		for i, s := range rows {
			values[i] = result.Number(math.NaN())
			if s != nil {
				values[i], atLeast[i] = f(s), s.AtLeast.Has(name)
			}
		}
		return figure(name, unitName, values, atLeast)
	}
	return []Figure{
		get("mean", unitName, func(s *document.Statistic) result.Number { return s.Mean }),
		get("median", unitName, func(s *document.Statistic) result.Number { return s.Median }),
		get("p95", unitName, func(s *document.Statistic) result.Number { return s.P95 }),
		get("p99", unitName, func(s *document.Statistic) result.Number { return s.P99 }),
		get("p99.9", unitName, func(s *document.Statistic) result.Number { return s.P999 }),
		get("max", unitName, func(s *document.Statistic) result.Number { return s.Max }),
		get("CV", "ratio", func(s *document.Statistic) result.Number { return s.CV }),
	}
}

func figure(name, unitName string, values []result.Number, atLeast []bool) Figure {
	f := Figure{Name: name, Unit: unitName, Values: values, AtLeast: []bool{}}
	if slices.Contains(atLeast, true) {
		f.AtLeast = atLeast
	}
	for i, v := range values {
		ratio, difference := math.NaN(), v-values[0]
		if values[0] != 0 {
			ratio = float64(v) / float64(values[0])
		}
		if f.IsAtLeast(0) || f.IsAtLeast(i) {
			ratio, difference = math.NaN(), result.Number(math.NaN())
		}
		f.Ratios = append(f.Ratios, result.Number(ratio))
		f.Differences = append(f.Differences, difference)
	}
	return f
}

func (f *Figure) IsAtLeast(run int) bool { return len(f.AtLeast) > run && f.AtLeast[run] }

// JSON writes the comparison for programs.
func (c *Comparison) JSON(w io.Writer) error {
	if err := document.WriteJSON(w, c); err != nil {
		return fmt.Errorf("write comparison as json: %w", err)
	}
	return nil
}
