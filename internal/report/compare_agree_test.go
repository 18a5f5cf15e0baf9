package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
)

// starved are the findings of a run whose load generator lacked CPU time throughout.
const starved = `[
	{"code": "generator-starved", "severity": "warning", "subject": "OLTP", "claim": "Load generator CPU-starved in 93 % of intervals.",
	 "evidence": ["worst: 584 ms run-queue wait in 1 s"], "advice": "Use fewer VMs."},
	{"code": "few-samples", "severity": "info", "subject": "OLTP", "claim": "Too few writes for a stable p99.9 in OLTP (3,542)."}]`

func compared(t *testing.T, runs ...*document.Run) *compare.Comparison {
	t.Helper()
	c, err := compare.Runs(runs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// comparisonForms returns the page and the text of a comparison as plain words with single blanks, and its JSON.
func comparisonForms(t *testing.T, c *compare.Comparison) (page, terminal string, decoded compare.Comparison) {
	t.Helper()
	var html, plain, js bytes.Buffer
	for _, err := range []error{report.ComparisonHTML(&html, c), report.ComparisonTerminal(&plain, c, 300, false), c.JSON(&js)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(js.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return flat(text(parseHTML(t, bytes.ReplaceAll(html.Bytes(), []byte("</t"), []byte(" </t"))))), flat(plain.String()), decoded
}

// TestComparisonCarriesFindings holds that all forms have every finding of every run, and none says that nothing is wrong.
func TestComparisonCarriesFindings(t *testing.T) {
	a, b := exampleRun(), exampleRun()
	for _, run := range []*document.Run{a, b} {
		run.Summary.Verdict, run.Summary.Reason, run.Summary.Caveats = result.Pass, "All steps ended.", nil
	}
	a.Summary.Findings = nil
	if err := json.Unmarshal([]byte(starved), &b.Summary.Findings); err != nil {
		t.Fatal(err)
	}
	want := b.Summary.Findings
	c := compared(t, a, b)
	page, terminal, decoded := comparisonForms(t, c)
	if len(decoded.Warnings) > 0 {
		t.Fatalf("the runs of the fixture have warnings: %q", decoded.Warnings)
	}
	if len(decoded.Findings) != len(want) {
		t.Fatalf("JSON has %d findings, want %d", len(decoded.Findings), len(want))
	}
	for i, f := range want {
		got := decoded.Findings[i]
		if got.Claim != f.Claim || got.Code != f.Code || !slices.Equal(got.Runs, []string{"B"}) {
			t.Errorf("finding %d is %+v", i, got)
		}
		for form, all := range map[string]string{"page": page, "terminal": terminal} {
			for _, words := range append([]string{"Run B:", f.Claim, f.Code, f.Advice}, f.Evidence...) {
				if !strings.Contains(all, words) {
					t.Errorf("the %s lacks %q", form, words)
				}
			}
		}
	}
	for _, calm := range []string{"No recorded difference", "No warnings and no findings"} {
		if strings.Contains(page, calm) || strings.Contains(terminal, calm) {
			t.Errorf("a comparison with findings says %q", calm)
		}
	}
	// The same finding in both runs is said once, of both.
	a.Summary.Findings = b.Summary.Findings
	page, terminal, decoded = comparisonForms(t, compared(t, a, b))
	if len(decoded.Findings) != len(want) || !slices.Equal(decoded.Findings[0].Runs, []string{"A", "B"}) {
		t.Errorf("the findings of both are %+v", decoded.Findings)
	}
	if !strings.Contains(page, "Runs A and B:") || !strings.Contains(terminal, "Runs A and B:") {
		t.Error("a finding of both runs does not say so")
	}
	// Only without any finding, and with factors that change no number, is all calm.
	a.Summary.Findings, b.Summary.Findings = nil, nil
	b.Manifest.Label, b.Manifest.Seed = "other", 1
	page, terminal, _ = comparisonForms(t, compared(t, a, b))
	for form, all := range map[string]string{"page": page, "terminal": terminal} {
		if !strings.Contains(all, "No recorded difference affects this comparison.") {
			t.Errorf("the %s of runs without findings is not calm", form)
		}
	}
	b.Manifest.Scenario.Variables = map[string]string{"rate": "9"}
	page, _, _ = comparisonForms(t, compared(t, a, b))
	if !strings.Contains(page, "No warnings and no findings. Factors that differ are listed below.") {
		t.Error("a comparison of runs with another variable is calm")
	}
}

// TestLargestDifferences makes one series differ in one window, and noise differ everywhere else.
func TestLargestDifferences(t *testing.T) {
	a, b := exampleRun(), exampleRun()
	b.Summary.Loads[0].Total.Errors = map[string]uint64{"EIO": a.Summary.Loads[0].Total.ErrorCount() + 5000}
	e := &b.Summary.Results[0]
	window := b.Summary.Windows[len(b.Summary.Windows)-1]
	for i := range e.Series[0].Points {
		p := &e.Series[0].Points[i]
		if at := int64(p.Seconds * 1e9); at >= window.FromNanos && at < window.ToNanos {
			p.Value /= 4
		}
	}
	for i := range e.Stats {
		if e.Stats[i].Window == window.Name {
			e.Stats[i].Mean /= 4
		}
	}
	page, terminal, decoded := comparisonForms(t, compared(t, a, b))
	if len(decoded.Largest) < 2 || len(decoded.Largest) > 5 {
		t.Fatalf("there are %d largest differences: %+v", len(decoded.Largest), decoded.Largest)
	}
	first, second := decoded.Largest[0], decoded.Largest[1]
	if first.Metric != "errors" || !first.BeyondNoise {
		t.Errorf("the largest difference is %+v, want the errors", first)
	}
	if second.Result != e.Name || second.Window != window.Name || second.Metric != "mean" || !second.BeyondNoise ||
		math.Abs(float64(second.Change)+0.75) > 0.01 || !(second.Noise > 0 && second.Noise < 0.5) {
		t.Errorf("the second largest is %+v", second)
	}
	// All forms show the same rows: what JSON has with full precision is on the page and on the terminal.
	for i, d := range decoded.Largest {
		if d.Title == "" || d.Unit == "" || d.Base == d.Value {
			t.Errorf("difference %d is %+v", i, d)
		}
		window := d.Window
		switch {
		case d.Result == "":
			window = "whole run"
		case window == "":
			window = "whole result"
		}
		value := func(v result.Number) string {
			if d.Result == "" && d.Unit != "ns" {
				return fmt.Sprintf("%s %s", grouped(uint64(v)), d.Unit)
			}
			return draw.Quantity(float64(v), d.Unit)
		}
		row := fmt.Sprintf("%s %s %s", window, value(d.Base), value(d.Value))
		for form, all := range map[string]string{"page": page, "terminal": terminal} {
			_, section, found := strings.Cut(all, "Largest differences figure")
			if !found {
				_, section, found = strings.Cut(all, "Largest differences ─")
			}
			section, _, _ = strings.Cut(section, "Comparability")
			if !found || !strings.Contains(section, d.Title) || !strings.Contains(section, row) {
				t.Errorf("the %s lacks %q: %s", form, row, section)
			}
		}
	}
	// Equal runs differ in nothing.
	if page, terminal, decoded := comparisonForms(t, compared(t, exampleRun(), exampleRun())); len(decoded.Largest) != 0 ||
		!strings.Contains(page, "No figure differs.") || !strings.Contains(terminal, "No figure differs.") {
		t.Errorf("equal runs differ in %+v", decoded.Largest)
	}
}

// TestNoiseIsNoLargeDifference moves a mean by less than its noise: it is listed, behind one that is beyond it.
func TestNoiseIsNoLargeDifference(t *testing.T) {
	a, b := exampleRun(), exampleRun()
	noisy := func(run *document.Run, factor float64) {
		e := &run.Summary.Results[0]
		for i := range e.Series[0].Points {
			// Half of the window at 1, half at 9, so that batches differ.
			e.Series[0].Points[i].Value = 1000
			if i%97 > 48 {
				e.Series[0].Points[i].Value = 9000
			}
		}
		for i := range e.Stats {
			e.Stats[i].Mean = result.Number(5000 * factor)
		}
	}
	noisy(a, 1)
	noisy(b, 1.02)
	_, _, decoded := comparisonForms(t, compared(t, a, b))
	if len(decoded.Largest) != 1 || decoded.Largest[0].BeyondNoise {
		t.Errorf("two per cent in noise of some ten are %+v", decoded.Largest)
	}
}

func grouped(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
