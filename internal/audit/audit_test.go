package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/audit"
	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestEveryRuleIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range audit.Rules() {
		if r.Code == "" || r.Summary == "" || r.Doc == "" || r.Example == "" || r.Check == nil {
			t.Errorf("rule %q lacks a part", r.Code)
		}
		if seen[r.Code] {
			t.Errorf("rule %q is listed twice", r.Code)
		}
		seen[r.Code] = true
	}
}

func TestEmptyInputIsIncomplete(t *testing.T) {
	found := audit.Check(rule.Input{Digest: digest.New(nil)})
	if len(found) != 1 || found[0].Code != "run-incomplete" {
		t.Errorf("an empty run has findings %v, want run-incomplete alone", found)
	}
	if again := audit.Check(rule.Input{}); len(again) != 1 {
		t.Errorf("without a digest: %v", again)
	}
}

// TestGuideNamesEveryRule keeps docs/guides/audit.md and the list of rules together.
func TestGuideNamesEveryRule(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "docs", "guides", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range audit.Rules() {
		if !strings.Contains(string(guide), "\n## "+r.Code+"\n") || !strings.Contains(string(guide), r.Example[:20]) {
			t.Errorf("the guide lacks rule %q or its example", r.Code)
		}
	}
}

// A rehearsal asks whether everything works, not how fast: doubts about its numbers do not make it undecided.
// TestGuideNamesWhatFlatters: the guide lists the rules whose faults can only have made numbers better.
func TestGuideNamesWhatFlatters(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(guide), "**Direction.**")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, r := range audit.Rules() {
		if strings.Contains(list, "(#"+r.Code+")") != r.Flatters {
			t.Errorf("%s: flatters %v", r.Code, r.Flatters)
		}
	}
}

func TestRehearsalIsDecidedWithDoubtfulNumbers(t *testing.T) {
	stalled := interval.Interval{Workload: "A", VM: "vm", Instance: 1, LengthNanos: 10e9, StalledNanos: 5e9, Final: true}
	for _, c := range []struct {
		rehearsal *result.Rehearsal
		want      finding.Severity
	}{{nil, finding.Undecided}, {&result.Rehearsal{Asked: 1e9}, finding.Warning}} {
		digest := digest.New(nil)
		digest.Add(&stalled)
		in := rule.Input{Digest: digest, Manifest: result.Manifest{Rehearsal: c.rehearsal},
			Summary: result.Summary{Ended: "completed", Loads: []result.LoadSummary{{Workload: "A", Instance: 1, ToNanos: 10e9}}}}
		found := false
		for _, f := range audit.Check(in) {
			if f.Code == "generator-stalled" {
				found = true
				if f.Severity != c.want {
					t.Errorf("rehearsal %v: severity %s, want %s", c.rehearsal != nil, f.Severity, c.want)
				}
			}
		}
		if !found {
			t.Error("the stall was not found")
		}
	}
}
