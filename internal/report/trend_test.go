package report_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// history is a trend of twenty runs whose level falls by 12 % with the thirteenth; the first five are pinned, and the ninth is far off.
func history(t *testing.T) *compare.Trend {
	t.Helper()
	random := rand.New(rand.NewPCG(71, 0))
	var runs []*document.Run
	var pinned []string
	for i := range 20 {
		run := smallRun()
		run.Manifest.Run, run.Manifest.Created = fmt.Sprintf("run-%d", i+1), time.Date(2026, 1, 1+i, 6, 0, 0, 0, time.UTC)
		level := math.Exp(0.01 * random.NormFloat64())
		switch {
		case i >= 12:
			level *= 0.88
			run.Manifest.Versions = map[string]string{"bragg": "2"}
		case i == 8:
			level *= 1.06
		case i < 5:
			pinned = append(pinned, run.Manifest.Run)
			run.Manifest.Label = "release-1"
		}
		for j := range run.Summary.Results {
			for k := range run.Summary.Results[j].Stats {
				run.Summary.Results[j].Stats[k].Mean = result.Number(20_000 * level)
			}
		}
		runs = append(runs, run)
	}
	trend, err := compare.OfHistory(runs, "iops", pinned)
	if err != nil {
		t.Fatal(err)
	}
	return trend
}

// TestTrendIsDrawn in the terminal and as a page, with its band, the first run after the change, and the baseline.
func TestTrendIsDrawn(t *testing.T) {
	trend := history(t)
	if len(trend.Levels) != 2 || trend.Levels[1].From != 12 || trend.Baseline == nil || len(trend.Baseline.Runs) != 5 || !(trend.Baseline.Low < trend.Baseline.Mean) {
		t.Fatalf("%+v, %+v", trend.Levels, trend.Baseline)
	}
	var text, html bytes.Buffer
	if err := report.TrendTerminal(&text, trend, 100, false); err != nil {
		t.Fatal(err)
	}
	if err := report.TrendHTML(&html, trend); err != nil {
		t.Fatal(err)
	}
	chart, _, _ := strings.Cut(text.String(), "Runs ──")
	if n := strings.Count(chart, "◆"); n < 2 || n > 4 { // the legend, the first after the change, the outlier
		t.Errorf("%d marks:\n%s", n, chart)
	}
	for _, want := range []string{"╌ baseline", "╌╌", "··", "●", "k IOPS"} {
		if !strings.Contains(chart, want) {
			t.Errorf("no %q:\n%s", want, chart)
		}
	}
	for _, want := range []string{`"near":true`, `"band":"max"`, `"name":"baseline"`, `"names":["run-1 of 2026-01-01, release-1"`, "version of bragg", `data-chart="trend"`} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestTrendOfSameRuns: a band whose ends read the same is one value.
func TestTrendOfSameRuns(t *testing.T) {
	var runs []*document.Run
	for i := range 4 {
		run := smallRun()
		run.Manifest.Run, run.Manifest.Created = fmt.Sprintf("run-%d", i+1), time.Date(2026, 1, 1+i, 6, 0, 0, 0, time.UTC)
		for j := range run.Summary.Results {
			for k := range run.Summary.Results[j].Stats {
				run.Summary.Results[j].Stats[k].Mean = 1886.96
			}
		}
		runs = append(runs, run)
	}
	trend, err := compare.OfHistory(runs, "iops", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.TrendTerminal(&text, trend, 200, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "expected at about 1.89k IOPS (95 %)") || strings.Contains(text.String(), "1.89k IOPS to 1.89k IOPS") {
		t.Errorf("%s", text.String())
	}
}

// TestTrendOfEqualRuns: the axis of runs that hardly differ does not magnify their noise, and its labels differ.
func TestTrendOfEqualRuns(t *testing.T) {
	var runs []*document.Run
	for i, mean := range []result.Number{1886.96, 1886.91} {
		run := smallRun()
		run.Manifest.Run, run.Manifest.Created = fmt.Sprintf("run-%d", i+1), time.Date(2026, 1, 1+i, 6, 0, 0, 0, time.UTC)
		for j := range run.Summary.Results {
			for k := range run.Summary.Results[j].Stats {
				run.Summary.Results[j].Stats[k].Mean = mean
			}
		}
		runs = append(runs, run)
	}
	trend, err := compare.OfHistory(runs, "iops", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.TrendTerminal(&text, trend, 100, false); err != nil {
		t.Fatal(err)
	}
	chart, _, _ := strings.Cut(text.String(), "Runs ──")
	var dots, labels []string
	for line := range strings.Lines(chart) {
		label, row, drawn := strings.Cut(line, "│")
		if drawn && strings.Contains(row, "●") {
			dots = append(dots, row)
		}
		if drawn && strings.TrimSpace(label) != "" {
			labels = append(labels, strings.TrimSpace(label))
		}
	}
	if len(dots) != 1 || len(labels) != 2 || labels[0] == labels[1] {
		t.Errorf("labels %q:\n%s", labels, chart)
	}
}
