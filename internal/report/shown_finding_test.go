package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
)

// TestAdviceStandsOnceForItsKind: findings that differ in their subject alone do not repeat what to do, neither in a report nor in
// a comparison, which has those of both runs together.
func TestAdviceStandsOnceForItsKind(t *testing.T) {
	starved := func(subject string) finding.Finding {
		return finding.Finding{Code: "generator-starved", Severity: finding.Warning, Subject: subject, Claim: subject + " lacked CPU time.",
			Advice: "Give it more CPU."}
	}
	other := finding.Finding{Code: "not-issued", Severity: finding.Warning, Subject: "A", Claim: "A was not issued.", Advice: "Lower the rate."}
	load := func(list ...finding.Finding) *document.Run {
		run := smallRun()
		run.Summary.Findings = list
		return run
	}
	a, b := load(starved("A"), starved("B"), other), load(starved("C"), other)
	var text, shown, compared, comparedPage bytes.Buffer
	c, err := compare.Runs([]*document.Run{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{report.Terminal(&text, a, 100, false), page.HTML(&shown, a), report.ComparisonTerminal(&compared, c, 100, false), report.ComparisonHTML(&comparedPage, c)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, out := range map[string]string{"terminal": text.String(), "page": shown.String(), "comparison": compared.String(), "comparison's page": comparedPage.String()} {
		for _, advice := range []string{"Give it more CPU.", "Lower the rate."} {
			if n := strings.Count(out, advice); n != 1 {
				t.Errorf("%s: %q is shown %d times", name, advice, n)
			}
		}
		if strings.Contains(name, "comparison") && strings.Index(out, "C lacked") > strings.Index(out, "A was not issued") {
			t.Errorf("%s: findings of one kind are apart", name)
		}
	}
}
