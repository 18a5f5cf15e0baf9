// Package lint finds probable mistakes in a scenario that can be read: steps that do not fit each other, loads that
// measure nothing, descriptions that contradict the steps.
//
// It needs no target and runs nothing. A rule is one file with a Rule value and one line in Rules; it sees Facts, which
// are drawn from the scenario, its job files and the catalog of steps, and returns findings:
//
//	Scenario + Catalog ──facts──▶ Facts ──each Rule──▶ findings in the order of the text
//
// Fail means that the planner refuses the scenario, with its own error. Warning means that a figure of the report will be
// misleading or missing. Info is worth knowing.
package lint

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
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
		ruleGenerator,
		ruleExpectWindow,
		ruleQuery,
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
func Check(sc *scenario.Scenario, catalog verb.Catalog) []finding.Finding {
	return check(newFacts(sc, catalog, planner.DryCompile(sc, catalog, false)), Rules())
}

// Faults reports faults in the steps and job files of a scenario, each checked separately, with the user's own lines. It
// also works for a scenario with other faults, as far as it could be read, so that the user sees all of them together.
func Faults(sc *scenario.Scenario, catalog verb.Catalog) diag.List {
	f := newFacts(sc, catalog, planner.DryCompile(sc, catalog, true))
	all := slices.Clone(f.Dry.Faults)
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		all = append(all, f.files[name].list...)
	}
	for i := range all {
		all[i].Pos.File = sc.Path(all[i].Pos.File)
	}
	return slices.DeleteFunc(all, func(d diag.Diagnostic) bool { return d.Severity != diag.SeverityError })
}

// Diagnostic shows a finding with the user's own line. A finding without a place also has no file. The scenario is the one that
// was checked.
func Diagnostic(f finding.Finding, sc *scenario.Scenario) diag.Diagnostic {
	d := diag.Diagnostic{Code: f.Code, Message: f.Claim, Hint: f.Advice, Severity: diag.SeverityNote}
	switch f.Severity {
	case finding.Fail:
		d.Severity = diag.SeverityError
	case finding.Warning, finding.Undecided:
		d.Severity = diag.SeverityWarning
	}
	if f.Pos == nil {
		return d
	}
	d.Pos = *f.Pos
	switch {
	case sc == nil:
	case d.Pos.File == sc.Document:
		d = sc.Point(d, 0)
	default:
		d.Source = lineOf(sc.Files[d.Pos.File], d.Pos.Line)
		d.Pos.File = sc.Path(d.Pos.File)
	}
	if d.Width <= 1 {
		d.Width = wordWidth(d.Source, d.Pos.Column)
	}
	return d
}

// wordWidth returns how many bytes the word at a column of a line has, at least 1.
func wordWidth(line string, column int) int {
	if column < 1 || column > len(line) {
		return 1
	}
	word := line[column-1:]
	if end := strings.IndexAny(word, " \t,]}"); end >= 0 {
		word = word[:end]
	}
	return max(1, len(word))
}

// lineOf returns a line of a text, counted from 1; "" if there is none.
func lineOf(text string, number int) string {
	for line := range strings.Lines(text) {
		if number--; number == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
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
