package report_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// windowed is a run of one workload with a value of its IOPS for each window, and a node that is cut after the first.
func windowed(values ...float64) *document.Run {
	run := exampleRun()
	iops := result.Evaluated{Name: "iops", Type: "iops", Unit: "IOPS", Aggregate: "sum", Group: "OLTP", ToNanos: int64(len(values)+1) * 60 * second,
		Series: []result.Series{{Name: "all", Points: result.Points{{Seconds: 1, Value: 1}}}}}
	row := func(window string, v float64) result.Stats {
		return result.Stats{Window: window, Series: "all", Count: 60, Distribution: result.Distribution{Mean: result.Number(v)}}
	}
	iops.Stats = append(iops.Stats, row("", 1))
	run.Summary.Windows, run.Summary.Impacts = nil, nil
	for i, v := range values {
		w := result.Window{Name: fmt.Sprintf("w%d", i), FromNanos: int64(i) * 60 * second, ToNanos: int64(i+1) * 60 * second}
		if i > 0 {
			w.Before = fmt.Sprintf("event %d", i)
		}
		run.Summary.Windows = append(run.Summary.Windows, w)
		iops.Stats = append(iops.Stats, row(w.Name, v))
	}
	run.Summary.Results = []result.Evaluated{iops}
	return run
}

func TestHeadlineOfWindows(t *testing.T) {
	d := document.Build(windowed(8000, 6000, 8400, 24000, 7990, 8000))
	if len(d.Headlines) != 1 {
		t.Fatalf("%d numbers", len(d.Headlines))
	}
	var got []string
	for _, p := range d.Headlines[0].Parts {
		got = append(got, p.Label+" "+d.Headlines[0].ValueText(p)+" "+p.ChangeText())
	}
	// The baseline, the last, and the two largest changes.
	want := []string{"baseline 8.00k IOPS ", "after event 1 6.00k IOPS −25 %", "after event 3 24.0k IOPS 3×", "after event 5 8.00k IOPS +0 %"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestHeadlineOfVMsThatLivedOn: a sum over a group falls when a node takes VMs with it, and the platform may have lost nothing.
func TestHeadlineOfVMsThatLivedOn(t *testing.T) {
	run := windowed(8000, 6000, 5900)
	score := func(count int, before, after float64) *result.ImpactScore {
		return &result.ImpactScore{Count: count, Baseline: result.ImpactBaseline{Mean: result.Number(before)}, Level: result.Number(after)}
	}
	load := func(lived, taken *result.ImpactScore) []result.ImpactLoad {
		return []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", Quantity: "iops", LivedOn: lived, TakenAway: taken}}
	}
	run.Summary.Impacts = []result.Impact{
		{Event: "event 1", Loads: load(score(3, 6000, 6000), score(1, 2000, 0))},
		{Event: "event 2", Loads: load(score(3, 6000, 5700), nil)},
	}
	parts := document.Build(run).Headlines[0].Parts
	if !math.IsNaN(float64(parts[0].LivedOn)) || parts[1].ChangeText() != "−25 %; lived on +0 %" || parts[2].ChangeText() != "−26.2 %; lived on −5 %" {
		t.Errorf("%q, %q", parts[1].ChangeText(), parts[2].ChangeText())
	}
}

// TestLead: the chart on top is that of a threshold that was missed, else of the first result with data.
func TestLead(t *testing.T) {
	run := windowed(8000, 6000)
	second := run.Summary.Results[0]
	second.Name = "second"
	run.Summary.Results = append(run.Summary.Results, second)
	if got := document.Build(run).Lead(); got != 0 {
		t.Errorf("result %d leads", got)
	}
	run.Summary.Results[1].Checks = []result.Check{{Text: "mean > 9k"}}
	if got := document.Build(run).Lead(); got != 1 {
		t.Errorf("result %d leads, not that of the missed threshold", got)
	}
	run.Summary.Results = nil
	if got := document.Build(run).Lead(); got != -1 {
		t.Errorf("result %d leads", got)
	}
}
