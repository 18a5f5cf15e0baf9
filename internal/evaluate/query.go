package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// queryStepsMax bounds how finely a query is evaluated.
const queryStepsMax = 20_000

// timeCounters matches metrics that add up the times of all operations: of devices, and of the disks of VMs by their hypervisor.
var timeCounters = regexp.MustCompile(`_time_(weighted_)?seconds_total\b|\b` + metric.HypervisorVM + `(` +
	string(target.VMReadTime) + `|` + string(target.VMWriteTime) + `)\b`)

// queryResult fills a result with the answer to its PromQL query.
func (ev *evaluator) queryResult(ctx context.Context, r scenario.Result, e *sheet) {
	if ev.in.Metrics == nil {
		e.Missing = "No data: there is no metric store."
		return
	}
	expr, err := ev.in.Metrics.Expand(r.Query, r.Group)
	if err != nil {
		e.Missing = err.Error()
		return
	}
	e.Source, e.Averages = "Query of the scenario", timeCounters.MatchString(expr)
	ev.ask(ctx, r, e, expr)
}

// ask evaluates expr over the result's window and aggregates the series.
func (ev *evaluator) ask(ctx context.Context, r scenario.Result, e *sheet, expr string) {
	ev.askFrom(ctx, r, e, expr, e.FromNanos)
}

// askFrom is ask for the time from a given point on.
func (ev *evaluator) askFrom(ctx context.Context, r scenario.Result, e *sheet, expr string, from int64) {
	step := ev.stepOf(r, e.window())
	step = max(step, (time.Duration(e.ToNanos-e.FromNanos) / queryStepsMax).Round(time.Second))
	// At whole seconds, where generators end their intervals.
	from = (from + int64(time.Second) - 1) / int64(time.Second) * int64(time.Second)
	e.lookback = max(e.lookback, int64(lookback))
	answer, err := ev.in.Metrics.Range(ctx, expr, metric.Window{FromNanos: min(from, e.ToNanos), ToNanos: e.ToNanos, Step: step})
	if err != nil {
		e.Missing = err.Error()
		return
	}
	if len(answer) == 0 {
		e.Missing = "No data: the query returned nothing."
		return
	}
	if r.Aggregate != "" {
		lines := make([]analysis.Line, len(answer))
		for i, s := range answer {
			for _, p := range s.Points {
				lines[i].Values = append(lines[i].Values, p.Value)
			}
		}
		all := analysis.Combine(lines, r.Aggregate)
		for i := range answer[0].Points {
			answer[0].Points[i].Value = all.Values[i]
		}
		answer = []metric.Series{{Points: answer[0].Points}}
	}
	slices.SortFunc(answer, func(a, b metric.Series) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, s := range answer {
		e.addSeries(result.Series{Name: s.Name(), Labels: s.Labels, Points: s.Points}, len(answer))
	}
}

// deviceResult queries the device counters of exporters on the VMs, for a group whose load is not run by this program.
func (ev *evaluator) deviceResult(ctx context.Context, r *shown, e *sheet) {
	expr, ok := map[string]string{
		"iops":      `sum by (vm) (irate(node_disk_reads_completed_total{M}[30s]) + irate(node_disk_writes_completed_total{M}[30s]))`,
		"bandwidth": `sum by (vm) (irate(node_disk_read_bytes_total{M}[30s]) + irate(node_disk_written_bytes_total{M}[30s]))`,
		"latency": `1e9 * sum by (vm) (irate(node_disk_read_time_seconds_total{M}[30s]) + irate(node_disk_write_time_seconds_total{M}[30s]))` +
			` / (sum by (vm) (irate(node_disk_reads_completed_total{M}[30s]) + irate(node_disk_writes_completed_total{M}[30s])) > 5)`,
	}[r.Type]
	if !ok || r.Source != scenario.FromGroup || ev.in.Metrics == nil {
		e.Missing = r.nothing()
		return
	}
	matchers, err := ev.in.Metrics.Expand("__curie_filter_scenario__,__curie_filter_vm_group__", r.Group)
	if err != nil {
		e.Missing = err.Error()
		return
	}
	from := ev.countedSince(ctx, r.window, "node_disk_reads_completed_total{"+matchers+"}")
	ev.askFrom(ctx, r.Result, e, strings.ReplaceAll(expr, "{M}", "{"+matchers+"}"), from)
	e.Source, e.Averages = fmt.Sprintf("Device counters of the VMs of group %q", r.Group), r.Type == "latency"
	if e.Missing != "" {
		e.Missing = "No data from load generators or exporters for this group."
	}
}

// lookback is the time before a point of a query in which the last two readings of a counter lie that intervals are kept in: a rate is
// that between them. Those of slower exporters lie further back.
const lookback = 2 * time.Second

// scrapesWithin is the time from the start of a result within which two scrapes of every VM are expected.
const scrapesWithin = time.Minute

// countedSince returns the first time at which the last two readings of a counter are within a window on every VM: a rate
// before that includes time before the window.
func (ev *evaluator) countedSince(ctx context.Context, w result.Window, counter string) int64 {
	first := metric.Window{FromNanos: w.FromNanos, ToNanos: min(w.ToNanos, w.FromNanos+int64(scrapesWithin)), Step: time.Second}
	read, err := ev.in.Metrics.Range(ctx, "max by (vm) (timestamp("+counter+"))", first)
	if err != nil {
		return w.FromNanos // the query of the counter itself will report the reason
	}
	since := w.FromNanos
	for _, s := range read {
		last, fresh := s.Points[0].Value, 0
		if math.IsNaN(last) {
			continue // not read before the window
		}
		for _, p := range s.Points {
			if math.IsNaN(p.Value) || p.Value == last {
				continue
			}
			if last, fresh = p.Value, fresh+1; fresh == 2 {
				since = max(since, int64(p.Seconds*1e9))
				break
			}
		}
	}
	return since
}
