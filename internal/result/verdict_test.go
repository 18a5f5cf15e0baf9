package result_test

import (
	"encoding/json"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
)

func TestValidity(t *testing.T) {
	warn := func(code, claim string) finding.Finding {
		return finding.Finding{Code: code, Severity: finding.Warning, Claim: claim}
	}
	info := finding.Finding{Code: "not-steady", Severity: finding.Info, Claim: "IOPS fell."}
	missed := finding.Finding{Code: "data-lost", Severity: finding.Fail, Claim: "An acknowledged write is lost."}
	doubt := finding.Finding{Code: "identical-samples", Severity: finding.Undecided, Claim: "Samples repeat."}
	for _, tt := range []struct {
		name, ended string
		findings    []finding.Finding
		want        result.Validity
		reason      string
	}{
		{"none", result.EndedCompleted, nil, result.Valid, "The audit has no warnings."},
		{"explanations", result.EndedCompleted, []finding.Finding{info}, result.Valid, "The audit has no warnings."},
		{"of the platform", result.EndedCompleted, []finding.Finding{missed}, result.Valid, "The audit has no warnings."},
		{"one", result.EndedCompleted, []finding.Finding{warn("cache-reads", "Reads hit the cache.")}, result.Qualified, "Reads hit the cache."},
		{"two", result.EndedCompleted, []finding.Finding{warn("cache-reads", "Reads hit the cache."), warn("start-skew", "Late.")},
			result.Qualified, "Reads hit the cache. (1 of 2 warnings)"},
		{"rehearsal", result.EndedCompleted, []finding.Finding{warn("rehearsal", "Scaled down.")}, result.Qualified, "Scaled down."},
		{"more than a rehearsal", result.EndedCompleted, []finding.Finding{warn("rehearsal", "Scaled down."), warn("start-skew", "Late."),
			warn("cache-reads", "Cached.")}, result.Qualified, "Late. (1 of 2 warnings)"},
		{"one beside a rehearsal", result.EndedCompleted, []finding.Finding{warn("rehearsal", "Scaled down."), warn("start-skew", "Late.")},
			result.Qualified, "Late."},
		{"of one kind", result.EndedCompleted, []finding.Finding{warn("start-skew", "A is late."), warn("start-skew", "B is late."),
			warn("cache-reads", "Cached.")}, result.Qualified, "A is late. (1 of 2 warnings)"},
		{"more than a simulation", result.EndedCompleted, []finding.Finding{warn("rehearsal", "Scaled down."), warn("simulated", "Not real."),
			warn("start-skew", "Late.")}, result.Qualified, "Late. (1 of 2 warnings)"},
		{"undecidable", result.EndedCompleted, []finding.Finding{warn("start-skew", "Late."), doubt}, result.Invalid, "Samples repeat."},
		{"of a later version", result.EndedCompleted, []finding.Finding{{Severity: "critical", Claim: "Worse."}}, result.Qualified, "Worse."},
		{"interrupted", result.EndedInterrupted, nil, result.Invalid, "The run did not complete: interrupted."},
	} {
		got, reason := result.ValidityOf(tt.ended, tt.findings)
		if got != tt.want || reason != tt.reason {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, got, reason, tt.want, tt.reason)
		}
	}
}

func TestHeadline(t *testing.T) {
	for want, of := range map[string][2]string{
		"PASS": {"PASS", "VALID"}, "PASS, qualified": {"PASS", "QUALIFIED"}, "COMPLETED, invalid": {"COMPLETED", "INVALID"}, "FAIL": {"FAIL", ""},
	} {
		if got := result.Headline(result.Verdict(of[0]), result.Validity(of[1])); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFormerVerdict reads bundles that call an undecided run UNKNOWN.
func TestFormerVerdict(t *testing.T) {
	var s result.Summary
	if err := json.Unmarshal([]byte(`{"verdict":"UNKNOWN"}`), &s); err != nil || s.Verdict != result.Undecided {
		t.Errorf("%q (%v)", s.Verdict, err)
	}
}
