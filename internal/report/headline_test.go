package report_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
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

// TestHeadlineOfShortWindows: the start of a load that goes on takes a second, whose rate says nothing of a stretch between events.
func TestHeadlineOfShortWindows(t *testing.T) {
	labels := func(short ...int) (got []string) {
		run := windowed(8000, 6000, 80_000, 7000, 90_000)
		for _, i := range short {
			w := &run.Summary.Windows[i]
			w.FromNanos = w.ToNanos - 13*second/10
		}
		for _, p := range document.Build(run).Headlines[0].Parts {
			got = append(got, p.Label)
		}
		return got
	}
	if got, want := labels(2, 4), []string{"baseline", "after event 1", "after event 3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := labels(1, 2, 3, 4), []string{"baseline", "after event 1", "after event 2", "after event 4"}; !slices.Equal(got, want) {
		t.Errorf("only short ones: %q, want %q", got, want)
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

// TestHeadlineBeforeTheNextEvent: the effect of a power cut is followed until after the node's return, beyond the window of the cut. The
// baseline of the return has the VMs that lived on there.
func TestHeadlineBeforeTheNextEvent(t *testing.T) {
	run := windowed(8000, 6000, 5900)
	score := func(from, to int64, before, after float64) *result.ImpactScore {
		return &result.ImpactScore{Count: 3, Level: result.Number(after), Baseline: result.ImpactBaseline{FromNanos: from * second, ToNanos: to * second, Mean: result.Number(before)}}
	}
	load := func(lived, taken *result.ImpactScore) []result.ImpactLoad {
		return []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", Quantity: "iops", LivedOn: lived, TakenAway: taken, UntilNanos: 180 * second}}
	}
	run.Summary.Windows[1].After = "event 2"
	run.Summary.Impacts = []result.Impact{
		{Event: "event 1", Loads: load(score(30, 60, 6000, 5000), &result.ImpactScore{Count: 1})},
		{Event: "event 2", Loads: load(score(90, 120, 5400, 5700), nil)},
	}
	parts := document.Build(run).Headlines[0].Parts
	if parts[1].ChangeText() != "−25 %; lived on −10 %" || parts[2].ChangeText() != "−26.2 %; lived on −5 %" {
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

// TestChangesThatSayNothing: a change is called noise only if the intervals of both numbers are known and as narrow as each other.
func TestChangesThatSayNothing(t *testing.T) {
	bounds := func(low, high float64) *[2]result.Number {
		return &[2]result.Number{result.Number(low), result.Number(high)}
	}
	for _, tt := range []struct {
		name        string
		value       float64
		base, after *[2]result.Number
		want        string
	}{
		{"small", 990, bounds(980, 1020), bounds(970, 1010), "990 IOPS (−1 %, within noise)"},
		{"large", 800, bounds(980, 1020), bounds(780, 820), "800 IOPS (−20 %)"},
		{"stalls and catches up", 980, bounds(990, 1010), bounds(500, 1460), "980 IOPS (−2 %)"},
		{"too few seconds", 800, bounds(980, 1020), nil, "800 IOPS (−20 %)*"},
	} {
		run := windowed(1000, tt.value)
		rows := run.Summary.Results[0].Stats
		rows[1].MeanBounds, rows[2].MeanBounds = tt.base, tt.after
		table := document.HeadlineTable(document.Build(run))
		if got := table.Rows[0][2]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestChangeOfANegativeNumber: a ratio of negative numbers has the wrong sign.
func TestChangeOfANegativeNumber(t *testing.T) {
	for _, values := range [][]float64{{-5, -4}, {-5, 4}, {5, -4}, {0, 3}, {math.Inf(1), 3}} {
		if p := document.Build(windowed(values...)).Headlines[0].Parts[1]; p.ChangeText() != "" {
			t.Errorf("%v: %q", values, p.ChangeText())
		}
	}
}

// TestOneBaseline: a load that starts later has no data in the baseline of the others.
func TestOneBaseline(t *testing.T) {
	run := windowed(8000, 6000, 5900)
	late := run.Summary.Results[0]
	late.Name, late.Stats = "late", slices.Concat(late.Stats[:1], late.Stats[2:])
	run.Summary.Results = append(run.Summary.Results, late)
	parts := document.Build(run).Headlines[1].Parts
	if parts[0].Label != "after event 1" || parts[1].ChangeText() != "" {
		t.Errorf("%+v", parts)
	}
}

// TestHeadlineBesideANeighbor: the window of a load that ran in no other has a column, and the other numbers are in it, however small
// their change.
func TestHeadlineBesideANeighbor(t *testing.T) {
	run := windowed(8000, 7900, 6000, 8400, 24000)
	neighbor := run.Summary.Results[0]
	neighbor.Name, neighbor.Stats = "neighbor", slices.Concat(neighbor.Stats[:1], neighbor.Stats[2:3])
	run.Summary.Results = append(run.Summary.Results, neighbor)
	d := document.Build(run)
	var got []string
	for _, p := range d.Headlines[0].Parts {
		got = append(got, p.Label)
	}
	if want := []string{"baseline", "after event 1", "after event 2", "after event 4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	table := document.HeadlineTable(d)
	if at := slices.Index(table.Heads, "after event 1"); at < 0 || table.Rows[0][at] == "" || table.Rows[1][at] == "" {
		t.Errorf("%q %q", table.Heads, table.Rows)
	}
}

// TestEqualTitles: two groups may have results of the same title.
func TestEqualTitles(t *testing.T) {
	run := windowed(8000, 6000)
	run.Summary.Results[0].Title = "IOPS"
	second := run.Summary.Results[0]
	second.Name = "iops of B"
	run.Summary.Results = append(run.Summary.Results, second)
	d := document.Build(run)
	if a, b := d.Headlines[0].Name(), d.Headlines[1].Name(); a != "IOPS (iops), mean" || b != "IOPS (iops of B), mean" {
		t.Errorf("%q, %q", a, b)
	}
}

// TestHeadlineWithoutVMs: where the cost for the VMs that lived on is not known for this window, the number says which are missing.
func TestHeadlineWithoutVMs(t *testing.T) {
	single := func(taken string) (list []result.ImpactVM) {
		for _, vm := range []string{"A", "B"} {
			list = append(list, result.ImpactVM{VM: vm, Taken: vm == taken})
		}
		return list
	}
	lived := func(level float64) *result.ImpactScore {
		return &result.ImpactScore{Count: 1, Baseline: result.ImpactBaseline{Mean: 4000}, Level: result.Number(level)}
	}
	event := func(name string, at int64, vm string, level float64, open bool) result.Impact {
		return result.Impact{Event: name, FromNanos: at * second, Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", Quantity: "iops",
			UntilNanos: (at + 60) * second, LivedOn: lived(level), Single: single(vm),
			TakenAway: &result.ImpactScore{Count: 1, Stall: result.ImpactStall{Open: open}}}}}
	}
	run := windowed(8000, 4000, 3000)
	// A is back when B goes.
	run.Summary.Impacts = []result.Impact{event("event 1", 60, "A", 4000, false), event("event 2", 120, "B", 3000, false)}
	parts := document.Build(run).Headlines[0].Parts
	if parts[1].ChangeText() != "−50 %; lived on +0 %" || parts[2].ChangeText() != "−62.5 %; 1 of 2 VMs taken away" {
		t.Errorf("%q, %q", parts[1].ChangeText(), parts[2].ChangeText())
	}
	// The time looked at goes beyond the window: its mean is not that of the window.
	run.Summary.Impacts = run.Summary.Impacts[:1]
	run.Summary.Impacts[0].Loads[0].UntilNanos = 180 * second
	run.Summary.Impacts[0].Loads[0].TakenAway.Stall.Open = true
	parts = document.Build(run).Headlines[0].Parts
	if parts[1].ChangeText() != "−50 %; 1 of 2 VMs taken away" || parts[2].ChangeText() != "−62.5 %; 1 of 2 VMs taken away" {
		t.Errorf("%q, %q", parts[1].ChangeText(), parts[2].ChangeText())
	}
}

// TestHeadlineOfAnOutage: the mean of the seconds with data hides that there were no others.
func TestHeadlineOfAnOutage(t *testing.T) {
	run := windowed(8000, math.NaN(), 7900)
	run.Summary.Impacts = []result.Impact{{Event: "event 1", FromNanos: 60 * second, Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP",
		Quantity: "iops", UntilNanos: 120 * second, TakenAway: &result.ImpactScore{Count: 4}}}}}
	for range 2 {
		h := document.Build(run).Headlines[0]
		if len(h.Parts) < 2 || h.ValueText(h.Parts[1]) != "no I/O: 4 of 4 VMs taken away" || h.Parts[0].Label != "baseline" {
			t.Errorf("%+v", h)
		}
		run.Summary.Results[0].Stats = run.Summary.Results[0].Stats[:3] // and to the end
		run.Summary.Windows = run.Summary.Windows[:2]
	}
}

// TestCostsAreShown: the sentence of an event is in every form for people, and its figures in the table.
func TestCostsAreShown(t *testing.T) {
	run := windowed(8000, 6000)
	nanos := 12 * second
	run.Summary.Impacts = []result.Impact{{Event: "event 1", Kind: result.ImpactNodeOff, Subjects: []string{"node-3"}, FromNanos: 60 * second,
		ToNanos: 61 * second, Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", Quantity: "iops", Unit: "IOPS",
			LivedOn: &result.ImpactScore{Count: 3, Baseline: result.ImpactBaseline{Mean: 6000, Seconds: 30}, Level: 5400,
				Dip:     result.ImpactDip{Seen: true, Depth: 0.5, OverSeconds: 2, Mean: 3000, Then: 6000, FromNanos: 60 * second, ToNanos: 72 * second},
				Within5: result.ImpactBack{Nanos: &nanos}, Within10: result.ImpactBack{Nanos: &nanos},
				Lost: result.ImpactLost{Operations: 36000, UncertainOperations: 500}}}}}}
	d := document.Build(run)
	sentence := d.Impacts[0].Sentence
	if !strings.Contains(sentence, "Power cut of node-3") || !strings.Contains(sentence, "50 %") {
		t.Fatalf("the sentence is %q", sentence)
	}
	var brief, full, html bytes.Buffer
	for _, err := range []error{report.Brief(&brief, run, 400, false), report.Terminal(&full, run, 400, false), page.HTML(&html, run)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"brief": brief.String(), "full": full.String(), "page": html.String()} {
		if !strings.Contains(text, "Power cut of node-3") {
			t.Errorf("%s has no sentence", name)
		}
	}
	for _, cell := range []string{"−50 % over 2 s", "36k ± 500", "12 s"} {
		if !strings.Contains(full.String(), cell) || !strings.Contains(html.String(), cell) {
			t.Errorf("a table has no %q", cell)
		}
	}
}
