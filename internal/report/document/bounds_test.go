package document_test

import (
	"math"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

func TestBoundsTexts(t *testing.T) {
	none := result.Number(math.NaN())
	row := func(p99 [2]result.Number) document.Statistic {
		return document.Statistic{Series: "all", Kind: "service",
			Distribution: result.Distribution{Mean: 1e6, Median: 1e6, P95: 2e6, P99: 4e6, P999: 8.7e6},
			Bounds: &result.PercentileBounds{Median: [2]result.Number{0.98e6, 1.01e6}, P95: [2]result.Number{none, none}, P99: p99,
				P999: [2]result.Number{7.1e6, none}}}
	}
	r := document.Result{Evaluated: result.Evaluated{Type: "latency", Unit: "ns"}}
	if texts := r.BoundsTexts(); texts != nil {
		t.Errorf("without rows: %q", texts)
	}
	r.Rows = []document.Statistic{row([2]result.Number{3.5e6, 5.2e6})}
	want := []string{
		"95 % bounds of percentiles, from the variation within this run: whole result, all, service time: p99 4.00 ms, 3.50 ms to 5.20 ms; " +
			"p99.9 8.70 ms, at least 7.10 ms.",
		"All other bounds are within 2 %."}
	if texts := r.BoundsTexts(); !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	r.Rows[0].P999 = none
	r.Rows[0].Bounds.P99 = [2]result.Number{3.9e6, 4.2e6}
	if texts := r.BoundsTexts(); !slices.Equal(texts, []string{"95 % bounds of these percentiles, from the variation within this run, are within 5 %."}) {
		t.Errorf("%q", texts)
	}
}
