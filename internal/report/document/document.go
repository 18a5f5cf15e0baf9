// Package document turns a run's bundle into the numbers and texts of a report, and writes them as JSON and CSV.
//
//	manifest, plan, events, summary ──Read──▶ Run ──Build──▶ Document ──▶ JSON, CSV; packages page and report
//
//	document.go, run.go, read.go, going.go   what is read, and what comes of it
//	headline.go, lived_on.go, costs.go, measured.go   the first screen: numbers, events, what was really measured
//	validity.go, shown_finding.go, bounds.go   verdicts, findings, uncertainty
//	workload.go, durations.go, scaling.go, stages.go, spread.go, timeline.go   the sections below
//	show.go, text.go   tables and texts that every form shares
//	json.go, csv.go    forms for programs
package document

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// DocumentFormat is the version of the JSON. It is raised when a program that reads the previous version could misread the new
// one.
const DocumentFormat = 1

// Document is the content of a report. Its JSON is the stable form for programs: times are nanoseconds on the run's axis, values
// are in the unit of their result, and a missing number is null.
type Document struct {
	Format        int            `json:"report_format"`
	Run           string         `json:"run"`
	Label         string         `json:"label,omitempty"`
	Created       time.Time      `json:"created"`
	DurationNanos int64          `json:"duration_ns"`
	Ended         string         `json:"ended"` // as Summary.Ended; without a summary "running" or "unfinished"
	Verdict       result.Verdict `json:"verdict"`
	Reason        string         `json:"reason"`
	// Validity says whether the numbers describe what the scenario set out to measure: VALID, QUALIFIED, INVALID; empty while
	// the run is not audited.
	Validity       result.Validity   `json:"validity"`
	ValidityReason string            `json:"validity_reason"`
	Findings       []finding.Finding `json:"findings"`
	Caveats        []string          `json:"caveats"`
	// Reduced holds a sentence for every factor of a rehearsal; it is empty for a full run.
	Reduced   []string          `json:"reduced"`
	Rehearsal *result.Rehearsal `json:"rehearsal"`
	// Simulated holds a sentence for each simulated part: a simulated target, simulated operations.
	Simulated []string            `json:"imitated"`
	Scenario  result.ScenarioInfo `json:"scenario"`
	Target    result.TargetInfo   `json:"target"`

	Phases    []result.Window `json:"phases"`
	Windows   []result.Window `json:"windows"`
	Marks     []Mark          `json:"marks"`
	Results   []Result        `json:"results"`
	Workloads []Workload      `json:"workloads"`
	Steps     []Step          `json:"steps"`
	// Headlines are the numbers that answer first, at most six.
	Headlines []Headline `json:"headlines"`
	// Measured describes what each workload really did: engine, I/O, data, co-runners.
	Measured []Measured `json:"measured"`
	// Durations are the durations of operations and the recovery of nodes; null if the run had none.
	Durations *result.Durations `json:"durations"`
	// Scaling is throughput against workers; null if the run did not start the same load step by step.
	Scaling *result.Scaling `json:"scaling"`
	// Stages are those of loads that go through several by themselves, such as the rates of a curve.
	Stages []result.Stages `json:"stages"`
	// Impacts are the costs of the events of the run phase.
	Impacts []Impact `json:"impacts"`

	Versions    map[string]string          `json:"versions"`
	Environment map[string]string          `json:"environment"`
	Engines     map[string]interval.Engine `json:"engines"`     // by workload, as planned: the section Engines of bundle.md
	Seed        uint64                     `json:"seed,string"` // as text, because JavaScript rounds large numbers
	Method      []Method                   `json:"method"`
	CommandLine []string                   `json:"command_line"`
	Reproduce   string                     `json:"reproduce"` // one line for a POSIX shell
	Plan        json.RawMessage            `json:"plan"`
	Events      []interval.Event           `json:"events"`
}

// Result is one chart and its statistics.
type Result struct {
	result.Evaluated
	Rows []Statistic `json:"statistics"`
	// Spread summarizes many series of one kind, window by window; it is empty for few series.
	Spread []Spread `json:"spread,omitempty"`
	// Stats shadows the field of Evaluated, whose JSON keys are those of the bundle.
	Stats any `json:"stats,omitempty"`
}

// Statistic is one row: one series over one window. Window "" is the whole result.
type Statistic struct {
	Window    string `json:"window"`
	FromNanos int64  `json:"from_ns"`
	ToNanos   int64  `json:"to_ns"`
	Series    string `json:"series"`
	Kind      string `json:"kind,omitempty"`
	Count     uint64 `json:"count"`
	Gaps      int    `json:"gaps,omitempty"`
	result.Distribution
	// Intervals are statistics of the means of intervals, as X-Ray computes them; null except for latency.
	Intervals *result.IntervalStats `json:"intervals"`
	// Corrected are the percentiles of a closed loop, corrected for coordinated omission; null otherwise.
	Corrected *result.CorrectedStats `json:"corrected"`
	// Bounds of the percentiles, two for each with 95 % confidence; null if unknown.
	Bounds *result.PercentileBounds `json:"percentile_bounds"`
	// MeanBounds are those of the mean; null if unknown.
	MeanBounds *[2]result.Number `json:"mean_bounds"`
	// Stall is the longest time without a completed operation; null if it is unknown or does not apply.
	Stall *result.Stall `json:"stall"`
}

// Impact is the cost of one event, in numbers and in one sentence.
type Impact struct {
	Sentence string `json:"sentence"`
	result.Impact
}

// Method describes how one kind of number is obtained.
type Method struct {
	What string `json:"what"`
	How  string `json:"how"`
}

// Build computes the report of run. It does not change run and never fails: if a damaged bundle lacks data, the Document lacks it
// too, and Reason or a finding reports it.
func Build(run *Run) *Document {
	m, s := &run.Manifest, &run.Summary
	d := &Document{
		Format: DocumentFormat, Run: m.Run, Label: m.Label, Created: m.Created, DurationNanos: s.Duration,
		Ended: s.Ended, Verdict: s.Verdict, Reason: s.Reason, Caveats: notNil(s.Caveats),
		Rehearsal: m.Rehearsal, Scenario: m.Scenario, Target: m.Target,
		Phases: notNil(s.Phases), Windows: notNil(s.Windows),
		Versions: m.Versions, Environment: m.Environment, Engines: m.Engines, Seed: m.Seed,
		CommandLine: notNil(m.CommandLine), Reproduce: textio.Shell(m.CommandLine...),
		Plan: cleanRaw(run.Plan), Events: notNil(run.Events),
	}
	if d.Verdict == "" {
		d.Verdict = result.Undecided
	}
	d.Findings = notNil(s.Findings)
	d.Reduced = reductions(m.Rehearsal)
	d.Simulated = simulations(m, s, run.Events)
	planned, err := ReadPlan(run.Plan)
	if err != nil {
		caveat := fmt.Sprintf("Cannot read the plan of this bundle: %v.", err)
		if !slices.Contains(d.Caveats, caveat) { // the run's evaluation already has it
			d.Caveats = append(slices.Clip(d.Caveats), caveat)
		}
	}
	d.Steps = steps(planned, run.Events)
	if d.Reason == "" {
		d.withoutSummary(run)
	}
	d.Validity, d.ValidityReason = s.Validity, s.ValidityReason
	if d.Validity == "" && !d.Open() {
		d.Validity, d.ValidityReason = result.ValidityOf(d.Ended, d.Findings)
	}
	d.Marks = marks(run.Events, d.Steps)
	d.Results = make([]Result, 0, len(s.Results))
	for i := range s.Results {
		d.Results = append(d.Results, buildResult(&s.Results[i], s.Windows))
	}
	d.Workloads = workloads(run, planned)
	d.Measured = measured(d, s, planned)
	d.Durations, d.Scaling, d.Stages = s.Durations, s.Scaling, notNil(s.Stages)
	d.Impacts = make([]Impact, 0, len(s.Impacts))
	for i := range s.Impacts {
		d.Impacts = append(d.Impacts, Impact{Sentence: impact.Sentence(&s.Impacts[i]) + ".", Impact: s.Impacts[i]})
	}
	d.Headlines = headlines(d)
	d.Method = methods(d)
	return d
}

func buildResult(e *result.Evaluated, windows []result.Window) Result {
	r := Result{Evaluated: *e, Rows: make([]Statistic, 0, len(e.Stats))}
	bounds := map[string]result.Window{"": {FromNanos: e.FromNanos, ToNanos: e.ToNanos}}
	for _, w := range windows {
		bounds[w.Name] = w
	}
	for _, st := range e.Stats {
		w := bounds[st.Window]
		r.Rows = append(r.Rows, Statistic{
			Window: st.Window, FromNanos: w.FromNanos, ToNanos: w.ToNanos, Series: st.Series, Kind: st.Kind,
			Count: st.Count, Gaps: st.Gaps, Distribution: st.Distribution, Intervals: st.Intervals,
			Corrected: st.Corrected, Bounds: st.Bounds, MeanBounds: st.MeanBounds, Stall: st.Stall,
		})
	}
	r.Spread = spread(r.Rows)
	return r
}

// ReadPlan returns an empty plan for an empty text.
func ReadPlan(raw json.RawMessage) (*plan.Plan, error) {
	if len(raw) == 0 {
		return &plan.Plan{}, nil
	}
	p, err := plan.Read(raw)
	if err != nil {
		return &plan.Plan{}, err
	}
	return p, nil
}

// notNil makes an empty list print as [] in JSON.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Heading is the title of the chart.
func (r *Result) Heading() string { return heading(&r.Evaluated) }

func heading(e *result.Evaluated) string { return cmp.Or(e.Title, e.Name) }
