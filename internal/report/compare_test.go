package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
)

func TestCompareRefuses(t *testing.T) {
	full, short := exampleRun(), rehearsalRun()
	cases := []struct {
		name string
		runs []*document.Run
		at   string
		code string
		exit int
		hint string
	}{
		{"one run", []*document.Run{full}, "", "compare-count", diag.ExitUsage, "two"},
		{"too many", []*document.Run{full, full, full, full, full, full, full, full, full}, "", "compare-count", diag.ExitUsage, "8"},
		{"a rehearsal with a full run", []*document.Run{full, short}, "", "compare-rehearsal", diag.ExitData, "rehearsals with rehearsals"},
		{"a full run with a rehearsal", []*document.Run{short, full}, "", "compare-rehearsal", diag.ExitData, "rehearsals with rehearsals"},
		{"an unknown event", []*document.Run{full, full}, "nodes.PowerOf", "compare-event", diag.ExitUsage, "did you mean"},
		{"a strange event", []*document.Run{full, full}, "x", "compare-event", diag.ExitUsage, "nodes.PowerOff node-3"},
	}
	for _, c := range cases {
		_, err := compare.Runs(c.runs, compare.Options{AlignAt: c.at})
		var e *diag.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if e.Code != c.code || e.Exit != c.exit || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: code %q, exit %d, hint %q", c.name, e.Code, e.Exit, e.Hint)
		}
	}
}

func TestCompareSaysWhatDiffers(t *testing.T) {
	a, b := exampleRun(), exampleRun()
	b.Manifest.Scenario.Hash = "ffff"
	b.Manifest.Scenario.Variables = map[string]string{"rate": "3000", "runtime": "1140", "new": "1"}
	b.Manifest.Engines = map[string]interval.Engine{"OLTP": {Name: "fio", Version: "3.33"}}
	b.Manifest.Environment = map[string]string{"memory": "32 GiB"}
	b.Manifest.Target.Facts = [][2]string{{"compression", "on"}}
	b.Manifest.Seed++
	c, err := compare.Runs([]*document.Run{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, f := range c.Factors {
		found[f.Name] = f.Values
	}
	for name, want := range map[string][2]string{
		"scenario hash": {"9f2c51d0a7be", "ffff"}, "variable rate": {"2000", "3000"}, "variable new": {"", "1"}, "variable vms_per_node": {"1", ""},
		"engine of OLTP": {"native io_uring", "fio 3.33"}, "memory": {"16 GiB", "32 GiB"}, "target fact compression": {"off", "on"},
		"seed": {"11400714819323198485", "11400714819323198486"},
	} {
		if got := found[name]; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("factor %q is %v, want %v", name, got, want)
		}
	}
	if _, ok := found["variable runtime"]; ok {
		t.Error("a variable that is the same is listed")
	}
	warnings := strings.Join(c.Warnings, "\n")
	if !strings.Contains(warnings, "The scenario differs") {
		t.Errorf("the warnings are %q", warnings)
	}
	b.Manifest.Scenario.Name, b.Manifest.Target.Simulated = "oltp", true
	c, err = compare.Runs([]*document.Run{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	warnings = strings.Join(c.Warnings, "\n")
	if !strings.Contains(warnings, "different scenarios") || !strings.Contains(warnings, "simulated target") {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestCompareRatiosAndAlignment(t *testing.T) {
	a, b := exampleRun(), exampleRun()
	// The second run is the first, ten seconds later and twice as fast.
	const late = 10 * second
	for i := range b.Events {
		b.Events[i].AtNanos += late
	}
	for i := range b.Summary.Phases {
		b.Summary.Phases[i].FromNanos += late
		b.Summary.Phases[i].ToNanos += late
	}
	first := &b.Summary.Results[0]
	for i := range first.Series[0].Points {
		first.Series[0].Points[i].Seconds += 10
	}
	for i := range first.Stats {
		first.Stats[i].Mean *= 2
	}
	first.Series[0].Name = "total"
	for i := range first.Stats {
		first.Stats[i].Series = "total"
	}
	for _, at := range []string{"", "nodes.PowerOff", "nodes.PowerOff node-3"} {
		c, err := compare.Runs([]*document.Run{a, b}, compare.Options{AlignAt: at})
		if err != nil {
			t.Fatal(err)
		}
		if c.Runs[1].ZeroNanos-c.Runs[0].ZeroNanos != late {
			t.Errorf("aligned at %q the zeros are %d and %d", at, c.Runs[0].ZeroNanos, c.Runs[1].ZeroNanos)
		}
		lines := c.Results[0].Lines
		if lines[0].Points[0].Seconds != lines[1].Points[0].Seconds {
			t.Errorf("aligned at %q the lines begin at %v and %v", at, lines[0].Points[0], lines[1].Points[0])
		}
		rows := c.Results[0].Rows
		if len(rows) != 4 {
			t.Fatalf("a result with one series in each run has %d rows, want one for each of 4 windows", len(rows))
		}
		mean := rows[1].Figures[0]
		if mean.Name != "mean" || mean.Ratios[1] != 2 || mean.Differences[1] != mean.Values[0] {
			t.Errorf("the mean is %+v", mean)
		}
	}
}

func TestReducedRunsWithOtherFactorsAreWarnedOf(t *testing.T) {
	a, b := rehearsalRun(), rehearsalRun()
	b.Manifest.Rehearsal.TimeFactor = 0.5
	c, err := compare.Runs([]*document.Run{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.ComparisonTerminal(&out, c, 60, false); err != nil {
		t.Fatal(err)
	}
	var narrow strings.Builder
	if err := report.Terminal(&narrow, a, 60, false); err != nil {
		t.Fatal(err)
	}
	narrow.WriteString(out.String())
	for line := range strings.Lines(narrow.String()) {
		if n := len([]rune(strings.TrimRight(line, " \n"))); strings.Contains(line, "REHEARSAL") && n > 60 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	for _, want := range []string{"REHEARSALS", "different scale factors", "rehearsal: time factor"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("the comparison does not say %q", want)
		}
	}
}
