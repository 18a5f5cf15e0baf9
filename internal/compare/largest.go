package compare

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// Measure names one number of a comparison.
type Measure struct {
	Result string `json:"result"` // its name; "" for a figure of a workload
	Title  string `json:"title"`  // of the result or the workload
	Series string `json:"series"`
	Kind   string `json:"kind"`
	Metric string `json:"metric"` // "mean", "p99", "errors", …
	Window string `json:"window"` // "" is the whole result
	Unit   string `json:"unit"`
}

// Label is the result or workload, the series and the statistic.
func (m *Measure) Label() string {
	text := m.Title
	if series := document.SeriesLabel(m.Series, m.Kind); series != "" && m.Series != m.Title {
		text += ", " + series
	}
	return text + ", " + m.Metric
}

// Difference is one figure that differs between the first run and another.
type Difference struct {
	Measure
	Run    int           `json:"run"` // index of Runs
	Base   result.Number `json:"base"`
	Value  result.Number `json:"value"`
	Change result.Number `json:"change"` // Value/Base - 1; null where Base is 0
	// Noise is the relative change that fluctuation within the two runs explains: two standard errors of the difference. Null if
	// unknown. It does not include variation between runs.
	Noise       result.Number `json:"noise"`
	BeyondNoise bool          `json:"beyond_noise"`
}

const (
	differencesMax = 5
	// differencesPerResult keeps a result with a series for each VM from filling the list.
	differencesPerResult = 2
	// logRatioMax bounds a change from or to zero: it counts as large, not as infinite.
	logRatioMax = 6.9 // a factor of 1,000
	batches     = 10
	batchesMin  = 4
)

// largestDifferences returns the largest difference of each series, at most two per result. Differences beyond their noise come
// first, then those of unknown noise. Within each class they are sorted by the relative change less the noise, largest first, as
// the logarithm of the ratio: half and double are equally far from one.
//
// The noise of a mean is that of batch means (Law and Kelton, Simulation Modeling and Analysis, 9.5.3): the seconds of a
// storage load are correlated, so their standard deviation by the square root of their number would be far too small.
func largestDifferences(documents []*document.Document, c *Comparison) []Difference {
	list := []Difference{}
	for run := 1; run < len(documents); run++ {
		for i := range c.Results {
			list = append(list, resultDifferences(documents, &c.Results[i], run)...)
		}
		ofResults := len(list) > 0
		for i := range c.Loads {
			list = append(list, loadDifferences(&c.Loads[i], run, ofResults)...)
		}
	}
	slices.SortStableFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.tier(), b.tier()), cmp.Compare(b.weight(), a.weight()))
	})
	perResult := map[string]int{}
	list = slices.DeleteFunc(list, func(d Difference) bool {
		perResult[d.Title]++
		return perResult[d.Title] > differencesPerResult
	})
	return list[:min(len(list), differencesMax)]
}

// tier orders differences by how certain they are.
func (d *Difference) tier() int {
	switch {
	case d.BeyondNoise:
		return 0
	case math.IsNaN(float64(d.Noise)):
		return 1
	}
	return 2
}

// weight is how far the figure moved beyond its noise, as a logarithm.
func (d *Difference) weight() float64 {
	noise := float64(d.Noise)
	if math.IsNaN(noise) {
		noise = 0
	}
	return logRatio(float64(d.Base), float64(d.Value)) - math.Log1p(noise)
}

func logRatio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return logRatioMax
	}
	return min(math.Abs(math.Log(b/a)), logRatioMax)
}

// difference completes d; false if the two values are equal or one is missing.
func (d Difference) complete() (Difference, bool) {
	a, b := float64(d.Base), float64(d.Value)
	if math.IsNaN(a) || math.IsNaN(b) || a == b || a < 0 || b < 0 {
		return d, false
	}
	d.Change = result.Number(math.NaN())
	if a > 0 {
		d.Change = result.Number(b/a - 1)
	}
	d.BeyondNoise = !math.IsNaN(float64(d.Noise)) && d.weight() > 0
	return d, true
}

// resultDifferences returns the largest difference of each series of one result, over its windows and figures.
func resultDifferences(documents []*document.Document, r *Result, run int) []Difference {
	if r.unasked {
		return nil
	}
	var order []string
	best := map[string]Difference{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.stats[0] == nil || row.stats[run] == nil {
			continue
		}
		for _, metric := range rowMetrics(r.Type) {
			d := Difference{Measure: r.measure(row, metric.name), Run: run, Base: metric.get(row.stats[0]), Value: metric.get(row.stats[run])}
			d.Noise = result.Number(2 * math.Hypot(
				batchError(documents[0], r.Name, row.stats[0], metric.statistic), batchError(documents[run], r.Name, row.stats[run], metric.statistic)))
			d, differs := d.complete()
			if !differs || row.stats[0].AtLeast.Has(metric.name) || row.stats[run].AtLeast.Has(metric.name) {
				continue
			}
			known, found := best[row.Series]
			if !found {
				order = append(order, row.Series)
			}
			if !found || d.tier() < known.tier() || d.tier() == known.tier() && d.weight() > known.weight() {
				best[row.Series] = d
			}
		}
	}
	var list []Difference
	for _, series := range order {
		list = append(list, best[series])
	}
	return list
}

func (r *Result) measure(row *Row, metric string) Measure {
	return Measure{Result: r.Name, Title: r.Title, Series: row.Series, Kind: row.Kind, Metric: metric, Window: row.Window, Unit: r.Unit}
}

// rowMetric is a figure of a row that is compared, and the points that show how it fluctuates.
type rowMetric struct {
	name, statistic string
	get             func(*document.Statistic) result.Number
}

func rowMetrics(resultType string) []rowMetric {
	mean := func(s *document.Statistic) result.Number { return s.Mean }
	if resultType != "latency" {
		return []rowMetric{{"mean", "", mean}}
	}
	return []rowMetric{{"mean", "mean", mean}, {"p99", "p99", func(s *document.Statistic) result.Number { return s.P99 }}}
}

// batchError is the relative standard error of the mean of a series over the window of a row; NaN if it has too few points.
func batchError(d *document.Document, name string, row *document.Statistic, statistic string) float64 {
	var points []float64
	for i := range d.Results {
		if d.Results[i].Name != name {
			continue
		}
		for _, s := range d.Results[i].Series {
			if s.Name == row.Series && s.Kind == row.Kind && s.Statistic == statistic {
				points = append(points, pointsBetween(s.Points, row.FromNanos, row.ToNanos)...)
			}
		}
	}
	count := min(batches, len(points))
	if count < batchesMin {
		return math.NaN()
	}
	means := make([]float64, count)
	for i := range means {
		part := points[i*len(points)/count : (i+1)*len(points)/count]
		for _, v := range part {
			means[i] += v / float64(len(part))
		}
	}
	mean, squares := 0.0, 0.0
	for _, m := range means {
		mean += m / float64(count)
	}
	for _, m := range means {
		squares += (m - mean) * (m - mean)
	}
	if mean == 0 {
		return 0
	}
	return math.Sqrt(squares/float64(count-1)/float64(count)) / math.Abs(mean)
}

func pointsBetween(points result.Points, fromNanos, toNanos int64) []float64 {
	var out []float64
	for _, p := range points {
		if at := int64(p.Seconds * float64(time.Second)); at >= fromNanos && at < toNanos && !math.IsNaN(p.Value) {
			out = append(out, p.Value)
		}
	}
	return out
}

// loadDifferences are differences of a workload that no result shows: errors, dropped operations, the time to complete and, if
// the scenario has no results, its rate.
func loadDifferences(l *Load, run int, ofResults bool) []Difference {
	var list []Difference
	for i := range l.Figures {
		f := &l.Figures[i]
		d := Difference{Measure: Measure{Title: l.Workload, Metric: f.Name, Unit: f.Unit}, Run: run, Base: f.Values[0], Value: f.Values[run],
			Noise: result.Number(math.NaN())}
		switch f.Name {
		case figureErrors, figureDropped:
			// Two standard errors of the logarithm of the ratio of two counts. One is added to each count, because a count may be
			// zero.
			d.Noise = result.Number(math.Expm1(2 * math.Sqrt(1/(float64(d.Base)+1)+1/(float64(d.Value)+1))))
		case figureCompletion:
		case figureRate:
			if ofResults {
				continue
			}
		default:
			continue
		}
		if d, differs := d.complete(); differs {
			list = append(list, d)
		}
	}
	return list
}
