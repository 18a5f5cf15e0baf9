package document

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/result"
)

// statisticColumns are the columns of CSV; docs/guides/report.md describes them.
var statisticColumns = []string{"run", "label", "rehearsal", "result", "title", "type", "unit", "window", "from_s", "to_s",
	"series", "kind", "count", "gaps", "mean", "median", "p95", "p99", "p999", "max", "min", "cv",
	"interval_count", "interval_mean", "interval_median", "interval_max", "interval_min", "interval_cv", "unfinished", "at_least"}

// noIntervals are the cells of a row that has no statistics of intervals.
var noIntervals = make([]string, 6)

// CSV writes one row for each result, window and series. Numbers have full precision and are in the unit of their row; a missing
// number is an empty cell. The latency of the workload table follows as type "workload".
func CSV(w io.Writer, run *Run) error {
	d := Build(run)
	out := csv.NewWriter(w)
	rows := [][]string{statisticColumns}
	head := []string{cell(d.Run), cell(d.Label), strconv.FormatBool(d.Rehearsal != nil)}
	for i := range d.Results {
		r := &d.Results[i]
		for _, s := range r.Rows {
			row := append(append([]string{}, head...), cell(r.Name), cell(r.Heading()), cell(r.Type), cell(r.Unit),
				cell(s.Window), seconds(s.FromNanos), seconds(s.ToNanos), cell(s.Series), cell(s.Kind))
			rows = append(rows, append(row, s.cells()...))
		}
	}
	for i := range d.Workloads {
		wl := &d.Workloads[i]
		for _, l := range wl.Latency {
			row := append(append([]string{}, head...), cell(wl.Name), cell(wl.Title()), "workload", "ns", "",
				seconds(wl.FromNanos), seconds(wl.ToNanos), l.Direction, l.Kind)
			rows = append(rows, append(row, l.cells()...))
		}
	}
	for _, row := range durationRows(d, head) {
		rows = append(rows, append(append(row, noIntervals...), "", ""))
	}
	return writeCSV(out, rows, d.Run)
}

// CSVPoints writes every point of every chart: run, result, unit, series, kind, statistic, seconds, value. A gap has no value.
func CSVPoints(w io.Writer, run *Run) error {
	d := Build(run)
	out := csv.NewWriter(w)
	rows := [][]string{{"run", "result", "unit", "series", "kind", "statistic", "seconds", "value"}}
	for i := range d.Results {
		r := &d.Results[i]
		for _, s := range r.Series {
			for _, p := range s.Points {
				rows = append(rows, []string{cell(d.Run), cell(r.Name), cell(r.Unit), cell(s.Name), cell(s.Kind), cell(s.Statistic),
					number(p.Seconds), number(p.Value)})
			}
		}
	}
	return writeCSV(out, append(rows, durationPoints(d)...), d.Run)
}

func writeCSV(out *csv.Writer, rows [][]string, run string) error {
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write report %q as csv: %w", run, err)
	}
	return nil
}

func (s *Statistic) cells() []string {
	row := cells(s.Count, strconv.Itoa(s.Gaps), s.Distribution)
	if i := s.Intervals; i != nil {
		row = append(append(row, strconv.FormatUint(i.Count, 10)), numbers(i.Mean, i.Median, i.Max, i.Min, i.CV)...)
	} else {
		row = append(row, noIntervals...)
	}
	return append(row, unfinished(s.Distribution)...)
}

func (l *Latency) cells() []string {
	return append(append(cells(l.Count, "", l.Distribution), noIntervals...), unfinished(l.Distribution)...)
}

// unfinished are the operations that never completed, and which statistics are lower bounds because of them.
func unfinished(d result.Distribution) []string {
	if d.Unfinished == 0 {
		return []string{"", ""}
	}
	return []string{strconv.FormatUint(d.Unfinished, 10), strings.Join(d.AtLeast, " ")}
}

func cells(count uint64, gaps string, d result.Distribution) []string {
	return append([]string{strconv.FormatUint(count, 10), gaps}, numbers(d.Mean, d.Median, d.P95, d.P99, d.P999, d.Max, d.Min, d.CV)...)
}

func numbers(list ...result.Number) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = number(float64(n))
	}
	return out
}

func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func seconds(nanos int64) string { return number(float64(nanos) / float64(time.Second)) }

// cell escapes text of unknown origin, so that a spreadsheet does not take it for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
