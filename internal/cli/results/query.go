package results

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// queryFlags are the flags of `query`.
type queryFlags struct {
	runs, group        string
	form               formChoice
	from, to, at, step time.Duration
	instant            bool
}

// NewQuery returns the command query.
func NewQuery(p *console.Process) *cobra.Command {
	f := queryFlags{form: formChoice{names: []string{"terminal", "csv", console.FormJSON}}}
	cmd := &cobra.Command{
		Use:   "query RUN PROMQL",
		Short: "Query the metrics of a run with PromQL",
		Long: "Query evaluates a PromQL expression over a run, or at one moment with --at. Times are relative to the\n" +
			"start of the run. X-Ray's macros __curie_filter_scenario__ and __curie_filter_vm_group__ work; the latter needs\n" +
			"--group. docs/formats/metrics.md lists the metrics.\n\n" + runref.Help,
		Example: "  bragg query last 'sum(rate(node_disk_reads_completed_total[10s]))'\n" +
			"  bragg query last 'bragg_node_value{metric=\"CpuUsage.Avg.Percent\"}' --at 30s\n" +
			"  bragg query last 'sum by (vm) (rate(node_disk_written_bytes_total[10s]))' --format csv --step 1s",
		Args: console.Between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.instant = cmd.Flags().Changed("at")
			return runQuery(cmd.Context(), p, args[0], args[1], f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.from, "from", 0, "start `TIME`")
	flags.DurationVar(&f.to, "to", 0, "end `TIME` (default: end of the run)")
	flags.DurationVar(&f.at, "at", 0, "evaluate at a single `TIME`")
	flags.DurationVar(&f.step, "step", 0, "`TIME` between points (default: 1/100 of the range, at least 1s)")
	flags.StringVar(&f.group, "group", "", "VM `GROUP` for __curie_filter_vm_group__")
	f.form.flags(flags, "of the answer: terminal, csv or json (default terminal)")
	p.RunsFlag(flags, &f.runs)
	cmd.ValidArgsFunction = runref.Complete(p, &f.runs)
	return cmd
}

func runQuery(ctx context.Context, p *console.Process, word, expr string, f queryFlags) error {
	if f.form.format == "table" { // the former name of this format
		f.form.format = "terminal"
	}
	form, err := f.form.choose("")
	if err != nil {
		return err
	}
	b, live, err := runref.OpenLive(p, p.RunsDirectory(f.runs), word)
	if err != nil {
		return err
	}
	defer b.Close()
	length := runLength(b)
	if err := checkQuery(b, f, length); err != nil {
		return err
	}
	store, closeStore, err := session.Metrics(ctx, b)
	if err != nil {
		return err
	}
	answer, err := evaluateQuery(ctx, store, expr, f, length)
	if closeErr := closeStore(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if live && len(answer) == 0 {
		fmt.Fprintf(p.Stderr, "bragg: the run is still running (%s so far): data is incomplete\n", unit.FormatDuration(length.Round(time.Second)))
	}
	switch form {
	case "csv":
		return printPoints(p, answer)
	case console.FormJSON:
		return printAnswer(p, answer)
	}
	return printSeries(p, answer, f.instant)
}

func evaluateQuery(ctx context.Context, store *metric.Store, expr string, f queryFlags, length time.Duration) ([]metric.Series, error) {
	expanded, err := store.Expand(expr, f.group)
	if err != nil {
		return nil, badQuery(err, "--group GROUP names the VM group")
	}
	if err := store.Check(expanded); err != nil {
		return nil, badQuery(err, "the expression is PromQL; quote it for the shell")
	}
	var answer []metric.Series
	if f.instant {
		answer, err = store.Instant(ctx, expanded, f.at.Nanoseconds())
	} else {
		var w metric.Window
		if w, err = queryWindow(f, length); err == nil {
			answer, err = store.Range(ctx, expanded, w)
		}
	}
	if err != nil {
		return nil, badQuery(err, "")
	}
	return answer, nil
}

func badQuery(err error, hint string) error {
	return &diag.Error{Code: "bad-query", Message: err.Error(), Hint: hint, Exit: diag.ExitUsage}
}

// pointsDefault is the default number of steps of a time range.
const pointsDefault = 100

func queryWindow(f queryFlags, length time.Duration) (metric.Window, error) {
	w := metric.Window{FromNanos: f.from.Nanoseconds(), ToNanos: f.to.Nanoseconds(), Step: f.step}
	if w.ToNanos == 0 {
		w.ToNanos = length.Nanoseconds()
	}
	if w.ToNanos < w.FromNanos {
		return w, fmt.Errorf("the range ends at %v, before its start at %v", time.Duration(w.ToNanos), f.from)
	}
	if w.Step <= 0 {
		w.Step = max(time.Duration(w.ToNanos-w.FromNanos)/pointsDefault, time.Second).Round(time.Second)
	}
	return w, nil
}

// runLength is the maximum length of a run: an unsealed run has not ended yet, or its end is unknown.
func runLength(b *result.Bundle) time.Duration {
	if seal := b.Sealed(); seal != nil {
		return time.Duration(seal.Length)
	}
	return time.Since(b.Manifest().Created)
}

// checkQuery refuses queries that no run could answer, because the result would look like a run without data.
func checkQuery(b *result.Bundle, f queryFlags, length time.Duration) error {
	groups := groupsOf(b)
	if f.group != "" && len(groups) > 0 && !slices.Contains(groups, f.group) {
		return console.BadFlag("unknown VM group "+strconv.Quote(f.group), "groups of the run: "+textio.Lines(strings.Join(groups, ", ")))
	}
	for _, at := range []struct {
		flag string
		time time.Duration
	}{{"--at", f.at}, {"--from", f.from}} {
		if at.time < 0 || at.time > length {
			return console.BadFlag(fmt.Sprintf("%s %v is outside the run", at.flag, at.time),
				"times are relative to its start; its duration is "+unit.FormatDuration(length.Round(time.Second)))
		}
	}
	return nil
}

// groupsOf names the VM groups of a run's plan; none without a plan.
func groupsOf(b *result.Bundle) []string {
	text, err := b.Plan()
	if err != nil || len(text) == 0 {
		return nil // without a plan the groups are unknown, so none is refused
	}
	p, err := plan.Read(text)
	if err != nil {
		return nil
	}
	var names []string
	for _, g := range p.Groups {
		names = append(names, g.Name)
	}
	return names
}

// printSeries prints one row per series: its value at a time, or the minimum, mean, maximum and last over a time range.
func printSeries(p *console.Process, answer []metric.Series, instant bool) error {
	if len(answer) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "no data")
		return err
	}
	t := console.Table{Head: []string{"SERIES", "POINTS", "MIN", "MEAN", "MAX", "LAST"}}
	if instant {
		t.Head = []string{"SERIES", "VALUE"}
	}
	for _, s := range answer {
		if instant {
			t.Add(seriesName(s.Labels), figure(s.Points[0].Value))
			continue
		}
		least, sum, most, last, n := math.Inf(1), 0.0, math.Inf(-1), math.NaN(), 0
		for _, point := range s.Points {
			if !math.IsNaN(point.Value) {
				least, most, last = min(least, point.Value), max(most, point.Value), point.Value
				sum += point.Value
				n++
			}
		}
		if n == 0 {
			t.Add(seriesName(s.Labels), "0", "–", "–", "–", "–")
			continue
		}
		t.Add(seriesName(s.Labels), strconv.Itoa(n), figure(least), figure(sum/float64(n)), figure(most), figure(last))
	}
	return t.Print(p.Stdout)
}

// seriesName prints labels as PromQL does.
func seriesName(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name != "__name__" {
			parts = append(parts, name+"="+strconv.Quote(labels[name]))
		}
	}
	return labels["__name__"] + "{" + strings.Join(parts, ", ") + "}"
}

func figure(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// printPoints prints one row per point; a gap has an empty value.
func printPoints(p *console.Process, answer []metric.Series) error {
	w := csv.NewWriter(p.Stdout)
	_ = w.Write([]string{"series", "seconds", "value"}) // Flush reports errors
	for _, s := range answer {
		for _, point := range s.Points {
			value := ""
			if !math.IsNaN(point.Value) {
				value = strconv.FormatFloat(point.Value, 'g', -1, 64)
			}
			_ = w.Write([]string{seriesName(s.Labels), strconv.FormatFloat(point.Seconds, 'f', -1, 64), value})
		}
	}
	w.Flush()
	return w.Error()
}

func printAnswer(p *console.Process, answer []metric.Series) error {
	out := []map[string]any{}
	for _, s := range answer {
		out = append(out, map[string]any{"labels": s.Labels, "points": s.Points})
	}
	return p.PrintJSON(out)
}
