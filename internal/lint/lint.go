// Package lint finds what is probably wrong in a scenario that can be read: steps that do not fit each other, loads
// that show nothing, text that disagrees with what happens.
//
// It needs no target and runs nothing. A rule is one file with a Rule value and one line in Rules; it sees Facts, which
// are drawn from the scenario, its job files and the catalog of steps, and returns findings:
//
//	Scenario + Catalog ──facts──▶ Facts ──each Rule──▶ findings in the order of the text
//
// Fail means that a plan will refuse the scenario. Warning means that a number of the report will mislead or be missing.
// Info is worth knowing.
package lint

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/scenario"
)

// Rule is one thing that lint looks for.
type Rule struct {
	Code     string // of its findings
	Severity finding.Severity
	Summary  string // one sentence: what is wrong
	Doc      string // why it matters and what to do, one or two sentences
	Check    func(f *Facts) []finding.Finding
}

// Rules lists every rule, in the order of the guide.
func Rules() []Rule {
	return []Rule{
		ruleReader,
		ruleUnknownStep,
		ruleStepArguments,
		ruleTimeoutWithAsync,
		ruleJobFile,
		ruleMissingDisk,
		ruleWorkloadUnused,
		ruleGroupUnused,
		ruleReadWithoutData,
		ruleAsyncCutOff,
		ruleWaitWithoutStart,
		ruleResultIdle,
		ruleResultGroupIdle,
		ruleMaskGroup,
		ruleDescription,
		ruleEstimatedRuntime,
		rulePowerLeftOff,
		ruleTeardownCleanUp,
		rulePlainPassword,
	}
}

// Check applies every rule and returns the findings in the order of the text.
func Check(sc *scenario.Scenario, catalog run.Catalog) []finding.Finding {
	return check(newFacts(sc, catalog), Rules())
}

// CheckSteps applies the rules that make sense for a scenario with faults, as far as it was read: those on single
// steps. Whoever mends a scenario sees them together with the faults and not one after the other.
func CheckSteps(sc *scenario.Scenario, catalog run.Catalog) []finding.Finding {
	return check(newFacts(sc, catalog), []Rule{ruleUnknownStep, ruleStepArguments})
}

func check(f *Facts, rules []Rule) []finding.Finding {
	var all []finding.Finding
	for _, rule := range rules {
		for _, found := range rule.Check(f) {
			found.Code = cmp.Or(found.Code, rule.Code)
			if found.Severity == "" {
				found.Severity = rule.Severity
			}
			all = append(all, found)
		}
	}
	slices.SortStableFunc(all, func(a, b finding.Finding) int { return comparePositions(a.Pos, b.Pos) })
	return all
}

// comparePositions orders findings; those without a place come first.
func comparePositions(a, b *diag.Position) int {
	if a == nil || b == nil {
		return cmp.Compare(rank(a), rank(b))
	}
	return a.Compare(*b)
}

func rank(p *diag.Position) int {
	if p == nil {
		return 0
	}
	return 1
}
