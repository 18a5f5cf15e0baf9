package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// numbersMax bounds the numbers that are tested together: with too many, only a large difference counts.
const numbersMax = 40

// statistics are those of a row that can be compared.
var statistics = []string{"mean", "median", "p95", "p99", "p99.9", "max"}

// judged are the statistics that answer whether B is different: of a latency its percentiles, of a rate its mean. What the target
// counts beside the load, such as its CPU, is not judged: every further number raises the bar for all.
var judged = map[string][]string{"iops": {"mean"}, "bandwidth": {"mean"}, "latency": {"median", "p99", "p99.9"}}

// measure collects every statistic of every row of the requested results, and times to complete of workloads.
func measure(c *Comparison, s *Sets) []Number {
	var list []Number
	for i := range c.Results {
		r := &c.Results[i]
		if r.unasked || r.Type == "errors" || r.Type == "active" {
			continue
		}
		for j := range r.Rows {
			for _, name := range statistics {
				list = append(list, rowNumber(r, &r.Rows[j], name, s.Base))
			}
		}
	}
	for i := range c.Loads {
		list = append(list, loadNumbers(&c.Loads[i], s.Base)...)
	}
	return list
}

// rowNumber is one statistic of a row in all runs.
func rowNumber(r *Result, row *Row, name string, base int) Number {
	n := Number{Measure: r.measure(row, name)}
	n.resolution = stat.Trifle
	if r.Type == "latency" && name != "mean" && name != "max" {
		n.resolution = stat.BucketError
	}
	values := make([]result.Number, len(row.stats))
	for i, st := range row.stats {
		values[i] = result.Number(math.NaN())
		if st == nil {
			continue
		}
		values[i], _ = st.Distribution.Statistic(name)
		if st.AtLeast.Has(name) {
			n.Reason = fmt.Sprintf("it is only a lower bound in run %s, whose operations failed or were dropped", setName(i, base))
		}
	}
	n.Base, n.New = values[:base], values[base:]
	return n
}

func setName(run, base int) string {
	if run < base {
		return fmt.Sprintf("A%d", run+1)
	}
	return fmt.Sprintf("B%d", run+1-base)
}

// loadNumbers are the time to complete of a workload and its rate and latencies.
func loadNumbers(l *Load, base int) []Number {
	var list []Number
	for _, f := range l.Figures {
		if f.Name == figureErrors || f.Name == figureDropped {
			continue
		}
		n := Number{Measure: Measure{Title: l.Workload, Metric: f.Name, Unit: f.Unit}, Base: f.Values[:base], New: f.Values[base:], prefill: l.prefill, resolution: stat.Trifle}
		if f.percentile {
			n.resolution = stat.BucketError
		}
		n.ofLoad = f.judged
		if at := slices.Index(f.AtLeast, true); at >= 0 {
			n.Reason = fmt.Sprintf("it is only a lower bound in run %s, whose operations failed or were dropped", setName(at, base))
		}
		list = append(list, n)
	}
	return list
}

// choose returns the numbers that are tested: of each requested result with one series its judged statistics, over the whole result
// and over each window between steps, and times to complete. If there is no such result, rates and latencies of workloads.
func (s *Sets) choose(c *Comparison) []Number {
	s.LeftOut = []string{}
	for i := range c.Results {
		if r := &c.Results[i]; !r.unasked && judged[r.Type] != nil && r.series() > 1 {
			s.LeftOut = append(s.LeftOut, fmt.Sprintf("The %d series of %s are not compared one by one.", r.series(), r.Title))
		}
	}
	list := s.pick(func(n *Number) bool { return c.judges(n, true) })
	if len(list) > numbersMax {
		s.LeftOut = append(s.LeftOut, fmt.Sprintf("Windows between steps are not compared: %d numbers at once would hide all but large differences.", len(list)))
		list = s.pick(func(n *Number) bool { return c.judges(n, false) })
	}
	if !slices.ContainsFunc(list, func(n Number) bool { return n.Result != "" }) {
		list = s.pick(func(n *Number) bool { return n.Result == "" && !n.prefill && (n.Metric == figureRate || n.ofLoad) })
	}
	if len(list) > numbersMax {
		s.LeftOut = append(s.LeftOut, fmt.Sprintf("Only the first %d of %d numbers are compared.", numbersMax, len(list)))
		list = list[:numbersMax]
	}
	return list
}

// pick returns the measured numbers that any run has and that are wanted.
func (s *Sets) pick(wanted func(*Number) bool) []Number {
	list := []Number{}
	for i := range s.measured {
		if n := &s.measured[i]; !n.absent() && wanted(n) {
			list = append(list, *n)
		}
	}
	return list
}

// judges reports whether a number is tested; windows are those between steps.
func (c *Comparison) judges(n *Number, windows bool) bool {
	if n.Result == "" {
		return n.Metric == figureCompletion && !n.prefill
	}
	r := c.result(n.Result)
	return slices.Contains(judged[r.Type], n.Metric) && r.series() == 1 && r.judgedKind(n.Kind) && (n.Window == "" || windows && r.judgedWindow())
}

// absent reports whether no run has the number.
func (n *Number) absent() bool {
	return !slices.ContainsFunc(slices.Concat(n.Base, n.New), func(v result.Number) bool { return !math.IsNaN(float64(v)) })
}

// series counts those of a result, over all kinds.
func (r *Result) series() int {
	names := map[string]bool{}
	for i := range r.Rows {
		names[r.Rows[i].Series] = true
	}
	return len(names)
}

func (c *Comparison) result(name string) *Result {
	for i := range c.Results {
		if c.Results[i].Name == name {
			return &c.Results[i]
		}
	}
	return nil
}

// judgedKind: response time counts where it was measured, because service time omits waiting.
func (r *Result) judgedKind(kind string) bool {
	return kind != "service" || !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Kind == "response" })
}

// judgedWindow reports whether the windows of a result are compared: a single one is the whole.
func (r *Result) judgedWindow() bool {
	windows := map[string]bool{}
	for i := range r.Rows {
		if r.Rows[i].Window != "" && slices.ContainsFunc(r.Rows[i].stats, func(s *document.Statistic) bool { return s != nil && s.Count > 0 }) {
			windows[r.Rows[i].Window] = true
		}
	}
	return len(windows) > 1
}
