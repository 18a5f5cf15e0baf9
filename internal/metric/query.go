package metric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/braggdev/bragg/internal/result"
)

// Series is one series of a query result.
type Series struct {
	Labels map[string]string
	Points result.Points
}

// Window is a time range on the run's axis, divided into steps.
type Window struct {
	FromNanos, ToNanos int64
	Step               time.Duration
}

var macroPattern = regexp.MustCompile(`__curie_filter_\w*?__`)

// Expand replaces the macros of X-Ray's scenarios by label matchers: __curie_filter_scenario__ selects this run,
// __curie_filter_vm_group__ the VMs of group. Any other __curie_filter_…__ is an error.
func (s *Store) Expand(expr, group string) (string, error) {
	return Expand(expr, s.run, group)
}

// Expand is Store.Expand without a store.
func Expand(expr, run, group string) (string, error) {
	var fault error
	out := macroPattern.ReplaceAllStringFunc(expr, func(macro string) string {
		switch macro {
		case "__curie_filter_scenario__":
			return "run=" + strconv.Quote(run)
		case "__curie_filter_vm_group__":
			if group == "" {
				fault = fmt.Errorf("%s needs a vm_group", macro)
			}
			return "vm_group=" + strconv.Quote(group)
		}
		fault = fmt.Errorf("no macro %s: there are __curie_filter_scenario__ and __curie_filter_vm_group__", macro)
		return macro
	})
	return out, fault
}

// Range evaluates expr at every step of w. All series of the result have a point at every step; a step without a value is NaN.
func (s *Store) Range(ctx context.Context, expr string, w Window) ([]Series, error) {
	step := max(w.Step, time.Millisecond)
	if w.ToNanos < w.FromNanos {
		return nil, fmt.Errorf("query %q: the window ends before it begins", shorten(expr))
	}
	if n := (w.ToNanos - w.FromNanos) / int64(step); n > queryPointsMax {
		return nil, fmt.Errorf("query %q: %d steps, at most %d: take a longer step", shorten(expr), n, queryPointsMax)
	}
	if err := s.Flush(); err != nil {
		return nil, err
	}
	answer, err := attempt(s.disk, func() ([]Series, error) { return s.matrix(ctx, expr, w, step) })
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", shorten(expr), err)
	}
	return answer, nil
}

func (s *Store) matrix(ctx context.Context, expr string, w Window, step time.Duration) ([]Series, error) {
	from, to := s.millis(w.FromNanos), s.millis(w.ToNanos)
	q, err := s.engine.NewRangeQuery(ctx, s.disk.source, nil, expr, time.UnixMilli(from), time.UnixMilli(to), step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	answer := make([]Series, 0, len(matrix))
	for _, series := range matrix {
		if len(series.Histograms) > 0 && len(series.Floats) == 0 {
			return nil, errors.New("the answer is a histogram: apply histogram_quantile or histogram_avg")
		}
		points := make(result.Points, 0, (to-from)/step.Milliseconds()+1)
		next := 0
		for t := from; t <= to; t += step.Milliseconds() {
			value := math.NaN()
			if next < len(series.Floats) && series.Floats[next].T == t {
				value = series.Floats[next].F
				next++
			}
			points = append(points, result.Point{Seconds: s.seconds(t), Value: value})
		}
		answer = append(answer, Series{Labels: labelMap(series.Metric), Points: points})
	}
	return answer, nil
}

// Instant evaluates expr at one time. Each series of the result has one point.
func (s *Store) Instant(ctx context.Context, expr string, atNanos int64) ([]Series, error) {
	if err := s.Flush(); err != nil {
		return nil, err
	}
	answer, err := attempt(s.disk, func() ([]Series, error) { return s.vector(ctx, expr, atNanos) })
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", shorten(expr), err)
	}
	return answer, nil
}

func (s *Store) vector(ctx context.Context, expr string, atNanos int64) ([]Series, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.disk.source, nil, expr, time.UnixMilli(s.millis(atNanos)))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	var answer []Series
	add := func(ls labels.Labels, t int64, v float64) {
		answer = append(answer, Series{labelMap(ls), result.Points{{Seconds: s.seconds(t), Value: v}}})
	}
	switch v := res.Value.(type) {
	case promql.Scalar:
		add(labels.EmptyLabels(), v.T, v.V)
	case promql.Vector:
		for _, sample := range v {
			if sample.H != nil {
				add(sample.Metric, sample.T, sample.H.Count)
				continue
			}
			add(sample.Metric, sample.T, sample.F)
		}
	default:
		return nil, fmt.Errorf("a %s has no value at one moment", res.Value.Type())
	}
	return answer, nil
}

// Check parses expr and returns its error.
func (s *Store) Check(expr string) error {
	if _, err := s.parser.ParseExpr(expr); err != nil {
		return fmt.Errorf("query %q: %w", shorten(expr), err)
	}
	return nil
}

func (s *Store) seconds(millis int64) float64 { return float64(millis-s.zeroMillis) / 1000 }

func labelMap(ls labels.Labels) map[string]string {
	out := make(map[string]string, ls.Len())
	ls.Range(func(l labels.Label) { out[l.Name] = l.Value })
	return out
}

// shorten limits the length of a query in a message.
func shorten(expr string) string {
	expr = strings.Join(strings.Fields(expr), " ")
	if len(expr) > 120 {
		return expr[:117] + "…"
	}
	return expr
}

// Name is the display name of the series: the values of the labels that distinguish it, or of all labels if there are none.
func (s Series) Name() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		switch {
		case name == model.MetricNameLabel || slices.Contains(ownNames, name):
		case name == "instance" && s.Labels["vm"] != "":
		default:
			parts = append(parts, s.Labels[name])
		}
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, " ")
}
