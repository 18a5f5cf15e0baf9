// Package evaluate computes the results of a run from its record: the summary that reports read, and the verdict.
//
//	bundle (events, intervals, samples) ── one pass ──▶ grids, latencies, readings of nodes and VMs
//	each result of the scenario ──▶ series, statistics per window, checks of thresholds
//	audit ──▶ findings; checks and findings ──▶ verdict
//
//	reading.go  intervals, one by one and merged
//	shown.go the time range of a result; warmup.go the warm-ups that it leaves out
//	result.go   traffic; latency.go, node.go, query.go, vm.go the other kinds
//	sheet.go    series and statistics of a result, per window
//	bounds.go   values that are known only in part, and why
//	check.go    report metrics and thresholds; noworse.go those against a pinned baseline
//	unproven.go thresholds on numbers that do not hold
//	impact.go   costs of events
//	gauge.go    gauges of loads; engines.go the engines that drove them
//	sources.go  what the storage counted
//
// It writes nothing and renders nothing, so a bundle can be evaluated again at any time.
package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/audit"
	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/evaluate/counted"
	"github.com/braggdev/bragg/internal/evaluate/stages"
	"github.com/braggdev/bragg/internal/evaluate/staircase"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/rollup"
	"github.com/braggdev/bragg/internal/scenario"
)

// Input is the input of Run.
type Input struct {
	Bundle   *result.Bundle // flushed; sealed or not
	Scenario *scenario.Scenario
	// Metrics answers queries; nil without a store, which results by query then report.
	Metrics Ranger
	Ended   string // result.EndedCompleted …
	Reason  string // one sentence on why a run that did not complete ended

	oneByOne bool // reads no merged intervals, for tests
}

// Ranger answers PromQL on the run's axis. It is implemented by metric.Store.
type Ranger interface {
	Expand(expr, group string) (string, error)
	Range(ctx context.Context, expr string, w metric.Window) ([]metric.Series, error)
}

// evaluator holds the data that one pass over the record collects.
type evaluator struct {
	in       Input
	plan     *plan.Plan // empty if it cannot be read
	manifest result.Manifest
	// sizeBound holds the starts of workloads that run until their data is processed: their time to complete is a result.
	sizeBound analysis.SizeBound
	events    []interval.Event
	timeline  *analysis.Timeline
	phase     result.Window // the run phase; empty if it was never reached
	windows   []result.Window
	grid      *analysis.Grid // of the run phase
	loads     analysis.Loads
	stalls    analysis.Stalls
	recover   *analysis.Recoveries
	impacts   *impact.Impacts
	digest    *digest.Digest
	nodes     nodeRecord
	vms       vmRecord
	sources   counted.Record
	gauges    gaugeRecord // of the run phase
	// staircases are the loads that the run starts on more and more VMs.
	staircases []*staircase.Staircase
	stages     *stages.Loads // nil unless a load has stages
	warmUps    warmUps
	shown      []*shown
	caveats    []string
	pinned     *pinned // nil unless a threshold needs it
}

// Run computes everything that reports read: each result of the scenario with its series and statistics, windows, roll-ups per
// workload, findings, and the verdict. It reads the record once.
func Run(ctx context.Context, in Input) (result.Summary, error) {
	ev := &evaluator{in: in, manifest: in.Bundle.Manifest(), gauges: gaugeRecord{}, sources: counted.Record{}}
	ev.digest = digest.New(ev.manifest.Engines)
	if err := ev.read(ctx); err != nil {
		return result.Summary{}, fmt.Errorf("evaluate run: %w", err)
	}
	s := result.Summary{
		Ended: in.Ended, Duration: ev.timeline.EndNanos, Windows: ev.windows, Phases: ev.timeline.Phases,
		Loads:   ev.loads.Summaries(ev.timeline, ev.manifest.Engines, ev.sizeBound),
		Results: []result.Evaluated{}, Caveats: ev.caveats,
	}
	if in.Scenario.ExpectsBaseline() {
		ev.pinned = pinnedOf(ev)
	}
	s.Impacts = ev.impacts.List(ev.grid, &ev.stalls)
	if s.Durations = ev.timeline.Durations(); s.Durations != nil {
		s.Durations.Recoveries = ev.recover.List(impact.Back(s.Impacts))
	}
	s.Impacts = complete(s.Impacts, &ev.manifest)
	s.Scaling = staircase.Scaling(ev.staircases, ev.timeline, ev.plan, ev.manifest.Engines)
	s.Impacts = withoutSteps(s.Impacts, s.Scaling)
	s.Stages = ev.stages.List()
	ev.setEngines(s.Loads)
	for i := range s.Loads {
		s.Loads[i].Fingerprint = ev.digest.Fingerprint(s.Loads[i].Workload, s.Loads[i].Instance, s.Loads[i].Prefill)
	}
	if s.Results = results(ctx, ev, &s); ctx.Err() != nil {
		return result.Summary{}, fmt.Errorf("evaluate run: %w", ctx.Err())
	}
	s.Results = append(s.Results, ev.gauges.results(&ev.manifest, s.Loads, ev.phase, ev.windows)...)
	s.Results = append(s.Results, sourceResults(ctx, ev)...)
	s.Results = append(s.Results, ev.vmResults()...)
	s.Findings = audit.Check(rule.Input{
		Manifest: ev.manifest, Summary: s, Events: ev.events, Plan: ev.plan, Digest: ev.digest,
	})
	unproven(&s, ev.in.Scenario.Results)
	s.Verdict, s.Reason = verdict(&s, s.Findings, in.Reason)
	s.Validity, s.ValidityReason = result.ValidityOf(s.Ended, s.Findings)
	return s, nil
}

// read reads the record.
func (ev *evaluator) read(ctx context.Context) error {
	ev.readPlan()
	if err := ev.readEvents(ctx); err != nil {
		return err
	}
	var err error
	if ev.warmUps, err = findWarmUps(ctx, ev); err != nil {
		return err
	}
	if ev.stages, err = findStages(ctx, ev); err != nil {
		return err
	}
	ev.prepare()
	if err := ev.readIntervals(ctx); err != nil {
		return err
	}
	return ev.readSamples(ctx)
}

// readPlan reads the plan and determines which starts are bound by their size.
func (ev *evaluator) readPlan() {
	ev.plan, ev.sizeBound = &plan.Plan{}, analysis.SizeBound{}
	text, err := ev.in.Bundle.Plan()
	if err == nil && len(text) > 0 {
		var p *plan.Plan
		if p, err = plan.Read(text); err == nil {
			ev.plan = p
		}
	}
	if err != nil {
		ev.caveats = append(ev.caveats, fmt.Sprintf("Cannot read the plan of this bundle: %v.", err))
	}
	count := map[string]int{} // instances of a workload count its starts in the order of the steps
	for _, s := range ev.plan.Steps {
		if s.Starts == nil || s.Starts.Prefill {
			continue
		}
		count[s.Workload]++
		// A start without a runtime, from its step or its configuration, lasts until its data is processed.
		w, planned := ev.plan.Workload(s.Workload)
		if s.Starts.Runtime == 0 && !(planned && w.Load != nil && w.Load.Timed) {
			ev.sizeBound[analysis.Start{Workload: s.Workload, Instance: count[s.Workload]}] = true
		}
	}
}

func (ev *evaluator) readEvents(ctx context.Context) error {
	for e, err := range ev.in.Bundle.Events() {
		if err != nil {
			return err
		}
		ev.events = append(ev.events, e)
	}
	recorded, err := ev.recordedUntil(ctx)
	if err != nil {
		return err
	}
	ev.timeline = analysis.NewTimeline(ev.events, recorded)
	ev.windows = ev.timeline.Windows()
	ev.recover = analysis.NewRecoveries(ev.timeline)
	ev.impacts = impact.New(ev.timeline)
	if phase, ok := ev.timeline.Phase("run"); ok {
		ev.phase = phase
	}
	return nil
}

// recordedUntil returns the end of the last interval of a run without an end event. A run that ended has that event.
func (ev *evaluator) recordedUntil(ctx context.Context) (int64, error) {
	ended := func(e interval.Event) bool { return e.Kind == interval.EventRunEnded }
	if slices.ContainsFunc(ev.events, ended) {
		return 0, nil
	}
	var last int64
	for batch, err := range batches(ctx, ev, rollup.Cuts{}) {
		if err != nil {
			return 0, err
		}
		for i := range batch.Each {
			last = max(last, batch.Each[i].EndNanos())
		}
	}
	return last, nil
}

// prepare sets up the collectors for the pass over intervals.
func (ev *evaluator) prepare() {
	ev.staircases = staircase.Find(ev.timeline, ev.plan, ev.manifest.Engines)
	ev.grid = ev.newGrid(ev.phase, analysis.Extent{ev.phase})
	for _, r := range ev.in.Scenario.Results {
		ev.shown = append(ev.shown, ev.newShown(r))
	}
}

// findStages reads the intervals once more if loads have stages, whose borders must be known before latencies are merged.
func findStages(ctx context.Context, ev *evaluator) (*stages.Loads, error) {
	found := stages.Find(ev.manifest.Engines)
	if found == nil {
		return nil, nil
	}
	for batch, err := range batches(ctx, ev, rollup.Cuts{}) {
		if err != nil {
			return nil, err
		}
		for i := range batch.Each {
			found.AddCounts(&batch.Each[i])
		}
	}
	return found, nil
}

// readIntervals reads each interval for what needs only its totals, and merged ones for latencies.
func (ev *evaluator) readIntervals(ctx context.Context) error {
	grids := ev.grids()
	for batch, err := range batches(ctx, ev, cutsOf(ev)) {
		if err != nil {
			return err
		}
		for i := range batch.Each {
			add(ev, &batch.Each[i], grids)
		}
		for i := range batch.Merged {
			addMerged(ev, &batch.Merged[i])
		}
		for i := range batch.Seconds {
			ev.digest.AddTimes(&batch.Seconds[i])
		}
	}
	for _, g := range grids {
		g.Close()
	}
	addLost(ev.digest, ev.shown)
	for _, r := range ev.shown {
		if r.latency != nil {
			r.latency.Close()
		}
	}
	return nil
}

// addLost counts the operations in flight when a load ended without its last interval, because its VM lost power or its agent was
// lost: they never completed. For a generator that does not count them, at least one is assumed.
func addLost(d *digest.Digest, results []*shown) {
	for _, s := range d.Streams() {
		if s.Final {
			continue
		}
		for _, r := range results {
			if r.latency == nil {
				continue
			}
			if r.keep(s.Workload, s.Group, s.Prefill) && r.extent.At(s.LastNanos-1) {
				r.latency.Lost(analysis.Stream{Workload: s.Workload, VM: s.VM}, s.LastNanos-1, max(1, s.BacklogEnd+s.InFlightEnd))
			}
		}
	}
}

// readSamples keeps cluster metrics that a result requires, and those of VMs in the run phase.
func (ev *evaluator) readSamples(ctx context.Context) error {
	ev.nodes = newNodeRecord(ev.in.Scenario.Results, ev.manifest.Target.Nodes)
	n := 0
	for s, err := range ev.in.Bundle.Samples() {
		if err != nil {
			return err
		}
		if n++; n%100_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ev.nodes.add(&s)
		ev.vms.add(&s, ev.phase)
		ev.sources.Add(&s)
	}
	return nil
}

// verdict derives the verdict of the run as a whole, and one sentence on why.
func verdict(s *result.Summary, findings []finding.Finding, reason string) (result.Verdict, string) {
	if s.Ended != result.EndedCompleted {
		if reason == "" {
			reason = "The run did not complete: " + s.Ended + "."
		}
		return result.Undecided, reason
	}
	checks, failed, undecided := 0, "", ""
	for _, r := range s.Results {
		for _, c := range r.Checks {
			checks++
			switch {
			case c.Passed:
			case c.Reason != "":
				undecided = cmp.Or(undecided, fmt.Sprintf("%q of %q is undecided: %s.", c.Text, r.Name, strings.TrimSuffix(c.Reason, ".")))
			default:
				failed = cmp.Or(failed, fmt.Sprintf("%q of %q was not met%s.", c.Text, r.Name, missedBy(&c)))
			}
		}
		for _, m := range r.Metrics {
			if m.Pass == nil {
				continue
			}
			if checks++; !*m.Pass {
				failed = cmp.Or(failed, fmt.Sprintf("%s of %q failed.", m.Name, r.Name))
			}
		}
	}
	for _, f := range findings {
		switch f.Severity {
		case finding.Fail:
			failed = cmp.Or(failed, f.Claim)
		case finding.Undecided:
			undecided = cmp.Or(undecided, "The numbers are invalid, and decide nothing.")
		}
	}
	switch {
	case failed != "":
		return result.Failed, failed
	case undecided != "":
		return result.Undecided, undecided
	case checks == 0:
		return result.Completed, "No thresholds defined."
	case checks == 1:
		return result.Pass, "Completed; the threshold was met."
	case checks == 2:
		return result.Pass, "Completed; both thresholds were met."
	}
	return result.Pass, fmt.Sprintf("Completed; all %d thresholds were met.", checks)
}
