package result_test

import (
	"encoding/json"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
)

// TestFindingsOfASummary: findings of a form that this program does not know cost nothing but themselves.
func TestFindingsOfASummary(t *testing.T) {
	for text, want := range map[string]string{
		`{"ended": "completed", "findings": [{"code": "few-samples", "severity": "info"}]}`: "few-samples",
		`{"ended": "completed", "findings": [{"code": "few-samples", "evidence": [{}]}]}`:   "findings-unreadable",
		`{"ended": "completed", "findings": []}`:                                            "",
		`{"ended": "completed"}`:                                                            "",
	} {
		var s result.Summary
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Ended != "completed" {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
		code := ""
		if len(s.Findings) > 0 {
			code = s.Findings[0].Code
		}
		if code != want || want == "findings-unreadable" && s.Findings[0].Severity != finding.Undecided {
			t.Errorf("%s: %+v", text, s.Findings)
		}
	}
}
