package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// cutRun is exampleRun with a power cut of this depth.
func cutRun(number int, depth float64) *document.Run {
	run := exampleRun()
	run.Manifest.Run = fmt.Sprintf("run-%d", number)
	back := int64(30e9)
	run.Summary.Impacts = []result.Impact{{Event: "nodes.PowerOff", Kind: result.ImpactNodeOff, Subjects: []string{"node-1"}, FromNanos: fixtureOff * second,
		Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", LivedOn: &result.ImpactScore{Count: 3,
			Dip:     result.ImpactDip{Seen: true, Depth: result.Number(depth), Detectable: 0.02},
			Within5: result.ImpactBack{AtLeastNanos: 40e9, Unknown: "not back"}, Within10: result.ImpactBack{Nanos: &back, AtLeastNanos: back}}}}}}
	return run
}

// TestCostsInAllForms: single runs show values and difference, sets the interval, and a gate its JUnit case.
func TestCostsInAllForms(t *testing.T) {
	page, terminal, decoded := comparisonForms(t, compared(t, cutRun(1, 0.2), cutRun(2, 0.5)))
	for form, all := range map[string]string{"page": page, "terminal": terminal} {
		for _, want := range []string{"What each event cost", "Power cut of node-1 OLTP dip 20 % 50 % +30 pp", "back to 5 % ≥ 40.0 s ≥ 40.0 s –",
			"back to 10 % 30.0 s 30.0 s 0 s", "Single runs: chance cannot be distinguished from change."} {
			if !strings.Contains(all, want) {
				t.Errorf("the %s lacks %q: %s", form, want, all)
			}
		}
	}
	if len(decoded.Costs) != 1 || decoded.Costs[0].Figures[0].Name != "dip" {
		t.Errorf("%+v", decoded.Costs)
	}
	c, err := compare.OfSets([]*document.Run{cutRun(1, 0.2), cutRun(2, 0.21), cutRun(3, 0.2)}, []*document.Run{cutRun(4, 0.5), cutRun(5, 0.52), cutRun(6, 0.51)}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	condition, err := compare.ParseCondition(`dip of "Power cut of node-1" > 5%`)
	if err != nil {
		t.Fatal(err)
	}
	c.Judge([]compare.Condition{condition})
	page, terminal, _ = comparisonForms(t, c)
	for form, all := range map[string]string{"page": page, "terminal": terminal} {
		for _, want := range []string{"dip 20.3 % 51 % +30.7 pp", "different", "only a bound in run A1"} {
			if !strings.Contains(all, want) {
				t.Errorf("the %s lacks %q: %s", form, want, all)
			}
		}
	}
	var junit bytes.Buffer
	if err := report.GateJUnit(&junit, c, time.Unix(0, 0)); err != nil || !strings.Contains(junit.String(), "Power cut of node-1, OLTP, dip: +30.7 pp") {
		t.Errorf("%s, %v", &junit, err)
	}
}
