package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
)

// stagedRun is the example whose OLTP is a curve. Its last two points are at the same rate.
func stagedRun(points int) *document.Run {
	run := exampleRun()
	s := result.Stages{Workload: "OLTP", Instance: 1, Unit: "IOPS", Sentences: []string{"OLTP: the median response time leaves its floor.", "b.", "c.", "d."},
		List: []result.Stage{{Number: 1, Name: "curve, maximum", Curve: 1, VMs: 1, Seconds: 9, Rate: 5e4, Bytes: 4e8, Mean: 3e6, Median: 2e6, P99: 9e6}}}
	for i := range points {
		s.List = append(s.List, result.Stage{Number: i + 2, Name: "curve, point", Curve: 1, Asked: result.Number(i + 1), VMs: 1, Seconds: 9,
			Rate: result.Number(5000 * min(i+1, points-1)), Mean: 2e5, Median: 1.5e5, P99: 9e5, AtLeast: i == points-1})
	}
	run.Summary.Stages = []result.Stages{s}
	for i := range run.Summary.Results {
		if r := &run.Summary.Results[i]; strings.HasPrefix(r.Name, "oltp_") {
			r.Workload = "OLTP"
		}
	}
	return run
}

// A load that goes through stages is shown stage by stage, and no mean over all of them is a headline.
func TestStagesAreShown(t *testing.T) {
	run := stagedRun(14)
	var brief, text, html bytes.Buffer
	for name, err := range map[string]error{
		"brief": report.Brief(&brief, run, 100, false), "terminal": report.Terminal(&text, run, 100, false), "page": page.HTML(&html, run),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for what, shown := range map[string]struct{ text, want string }{
		"sentence, brief":  {brief.String(), "leaves its floor."},
		"more curves":      {brief.String(), "1 more curve: bragg report"},
		"maximum, brief":   {brief.String(), "curve, maximum  50.0k IOPS   400 MB/s  3.00 ms  2.00 ms  9.00 ms"},
		"bound, brief":     {brief.String(), "… 3 more"},
		"note":             {brief.String(), "without the beginning or the warm-up of each stage"},
		"section":          {text.String(), "Stages of OLTP"},
		"lower bound":      {text.String(), "≥ 900 µs"},
		"page, sentence":   {html.String(), "leaves its floor."},
		"page, chart":      {html.String(), `data-chart="stages-0-1"`},
		"page, axis":       {html.String(), `"against":"IOPS"`},
		"page, section":    {html.String(), `<section id="stages">`},
		"page, whole list": {html.String(), "Stages of OLTP"},
	} {
		if !strings.Contains(shown.text, shown.want) {
			t.Errorf("%s: no %q", what, shown.want)
		}
	}
	for _, h := range document.Build(run).Headlines {
		if h.Title == "OLTP operations" || h.Title == "OLTP latency" {
			t.Errorf("headline %q is a mean over all stages", h.Title)
		}
	}
	if t.Failed() {
		t.Log(brief.String())
	}
	var few bytes.Buffer
	if err := page.HTML(&few, stagedRun(1)); err != nil || strings.Contains(few.String(), `data-chart="stages-`) {
		t.Errorf("one point is drawn, %v", err)
	}
}
