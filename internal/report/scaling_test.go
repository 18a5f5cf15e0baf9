package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
)

// growingRun is the example with throughput against workers. One interval is open, and the last step repeats a number of workers.
func growingRun() *document.Run {
	run := exampleRun()
	open := result.Number(math.NaN())
	s := &result.Scaling{
		Workloads: []string{"Step 1"}, Worker: "one VM that runs read.fio", Unit: "IOPS", Answered: true,
		Sentence: "Throughput peaks near 9 workers (8 or more), at 300k IOPS.", Density: "Density: 50 %.", Notes: []string{"A restriction."},
		Fit: &result.ScalingFit{Model: "usl", Peak: &result.ScalingEstimate{Value: 9, Low: 8, High: open}},
	}
	for i, workers := range []int{1, 3, 5, 7, 9, 11, 11} {
		s.Steps = append(s.Steps, result.ScalingStep{FromNanos: int64(i) * 10e9, ToNanos: int64(i+1) * 10e9, Workers: workers,
			Throughput: result.Number(30000 * workers), Fitted: result.Number(29000 * workers), Share: 0.5, Mean: 2e5, Median: 1.5e5, P99: 9e5})
		s.Fit.Curve = append(s.Fit.Curve, result.ScalingEstimate{Workers: result.Number(workers), Value: 1e5, Low: 9e4, High: open})
	}
	run.Summary.Scaling = s
	return run
}

func TestScalingIsShown(t *testing.T) {
	run := growingRun()
	var brief, text, html, encoded bytes.Buffer
	for name, err := range map[string]error{
		"brief": report.Brief(&brief, run, 100, false), "terminal": report.Terminal(&text, run, 100, false), "page": page.HTML(&html, run),
		"json": document.JSON(&encoded, run),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for what, shown := range map[string]struct{ text, want string }{
		"sentence, brief": {brief.String(), run.Summary.Scaling.Sentence},
		"sentence":        {text.String(), run.Summary.Scaling.Sentence},
		"restriction":     {text.String(), "A restriction."},
		"chart":           {text.String(), "IOPS: ● measured, · fit"},
		"row":             {text.String(), "330k IOPS   319k"},
		"page, chart":     {html.String(), `data-chart="scaling-throughput"`},
		"page, response":  {html.String(), `data-chart="scaling-response"`},
		"page, axis":      {html.String(), `"against":"workers"`},
		"page, sentence":  {html.String(), run.Summary.Scaling.Sentence},
	} {
		if !strings.Contains(shown.text, shown.want) {
			t.Errorf("%s: no %q", what, shown.want)
		}
	}
	var v map[string]any
	if err := json.Unmarshal(encoded.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	all := keys{}
	keysOf(reflect.TypeFor[document.Document](), "", nil, all)
	checkKeys(t, "growing run", "", v, all)
}

// The charts against workers have an axis of workers, no events and a zoom of their own, and fit the page at both widths. The chart of
// the fit is on the first screen.
func TestScalingIsDrawn(t *testing.T) {
	b := open(t)
	for _, width := range []int64{1400, 420} {
		b.load(t, htmlOf(t, growingRun()), width, 1000)
		type chart struct {
			ID, Place, Axis string
			Marks, Top, Min float64
		}
		got := eval[[]chart](t, b, `bragg.charts.filter(c => c.chart.against).map(c => ({ ID: c.chart.id, Place: bragg.place(c.chart, 3),
			Axis: c.u.axes[0].label, Marks: c.chart.marks.length, Top: c.box.getBoundingClientRect().top, Min: c.u.scales.x.min }))`)
		if len(got) != 2 || got[0].ID != "scaling-throughput" || got[1].ID != "scaling-response" {
			t.Fatalf("%d pixels: charts %+v", width, got)
		}
		for _, c := range got {
			if c.Place != "3 workers" || c.Axis != "workers" || c.Marks != 0 || c.Min != 0 {
				t.Errorf("%d pixels: %+v", width, c)
			}
		}
		if width == 1400 && got[0].Top > 800 {
			t.Errorf("the chart of the fit begins at %v pixels", got[0].Top)
		}
		over := eval[[]float64](t, b, `(() => { bragg.zoom([10, 20]); const u = bragg.charts.find(c => c.chart.against).u;
			u.setCursor({ left: 50, top: 50 }); bragg.zoom(null);
			return [u.scales.x.max, document.documentElement.scrollWidth - window.innerWidth]; })()`)
		if over[0] < 11 || over[1] > 0 {
			t.Errorf("%d pixels: the axis ends at %v after a zoom of the others, the page is %v pixels too wide", width, over[0], over[1])
		}
	}
	b.check(t)
}
