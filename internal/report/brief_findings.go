package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
)

// briefFindingsMax bounds the findings of the short form. Failures and undecided ones are always shown.
const briefFindingsMax = 10

// briefFindings prints a line per kind of finding.
func (p *textPage) briefFindings(d *document.Document) {
	groups := findingGroups(d)
	if len(groups)+len(d.Caveats) > 0 {
		p.line("")
	}
	left := 0
	for i, group := range groups {
		f := group[0]
		paint := map[finding.Severity]func(string) string{
			finding.Fail: p.Bad, finding.Undecided: p.Doubt, finding.Warning: p.Doubt}[f.Severity]
		if i >= briefFindingsMax && f.Severity != finding.Fail && f.Severity != finding.Undecided {
			left++
			continue
		}
		head := string(f.Severity) + ": "
		if subject := document.SubjectBeside(f); len(group) == 1 && subject != "" {
			head += subject + ": "
		}
		p.text("", head+sharedClaim(group)+" ["+f.Code+"]", paint)
	}
	if left > 0 {
		p.text("", fmt.Sprintf("… and %d more", left), nil)
	}
	for _, c := range d.Caveats {
		p.text("", "caveat: "+c, nil)
	}
}

// findingGroups groups findings by code and severity, worst first. It omits the rehearsal and the reasons of the verdicts:
// they are printed above, that of the validity with the other subjects of its kind.
func findingGroups(d *document.Document) [][]finding.Finding {
	groups := groupFindings(d)
	for i, group := range groups {
		if isValidityReason(d, group) {
			if groups[i] = group[1:]; allHaveSubjects(group) {
				groups[i] = nil
			}
		}
	}
	return slices.DeleteFunc(groups, func(group []finding.Finding) bool { return len(group) == 0 })
}

func groupFindings(d *document.Document) [][]finding.Finding {
	var groups [][]finding.Finding
	for _, f := range d.Findings {
		if f.Code == "rehearsal" && d.Rehearsal != nil || f.Claim == d.Reason {
			continue
		}
		i := slices.IndexFunc(groups, func(g []finding.Finding) bool {
			return g[0].Code == f.Code && g[0].Severity == f.Severity
		})
		if i < 0 {
			groups = append(groups, []finding.Finding{f})
			continue
		}
		groups[i] = append(groups[i], f)
	}
	order := []finding.Severity{finding.Fail, finding.Undecided, finding.Warning, finding.Info}
	slices.SortStableFunc(groups, func(a, b []finding.Finding) int {
		return cmp.Compare(slices.Index(order, a[0].Severity), slices.Index(order, b[0].Severity))
	})
	return groups
}

// isValidityReason: the reason of the validity may go on with how many warnings there are.
func isValidityReason(d *document.Document, group []finding.Finding) bool {
	claim := group[0].Claim
	return claim != "" && group[0].Severity != finding.Info && strings.HasPrefix(d.ValidityReason, claim)
}

// validityReason is the reason of the validity with the other subjects of its finding: the count of warnings at its end is of kinds.
func validityReason(d *document.Document) string {
	for _, group := range groupFindings(d) {
		if isValidityReason(d, group) && allHaveSubjects(group) {
			return sharedClaim(group) + strings.TrimPrefix(d.ValidityReason, group[0].Claim)
		}
	}
	return d.ValidityReason
}

// sharedClaim is the first claim of a group, with the other subjects of the finding.
func sharedClaim(group []finding.Finding) string {
	first := group[0].Claim
	if len(group) == 1 {
		return first
	}
	if !allHaveSubjects(group) {
		return fmt.Sprintf("%s Also: %d more.", first, len(group)-1)
	}
	if also := alsoConcerned(group); also != "" {
		return first + " Also: " + also + "."
	}
	return first
}

func allHaveSubjects(group []finding.Finding) bool {
	return !slices.ContainsFunc(group, func(f finding.Finding) bool { return f.Subject == "" })
}

// startPattern matches the start number that follows the name of a workload in a claim.
var startPattern = regexp.MustCompile(`^ \((?:start \d+|prefill)\)`)

// directionPattern matches the direction in a claim, or the kind of its operations.
var directionPattern = regexp.MustCompile(`\b(read|write|trim)s?\b|\b([\w-]+) operations\b`)

// alsoNamed bounds how many further findings of a group are named.
const alsoNamed = 3

// alsoConcerned names the findings after the first. If several have the same subject, the names include the start of the workload
// and the direction.
func alsoConcerned(group []finding.Finding) string {
	subjects := map[string]int{}
	for _, f := range group {
		subjects[f.Subject]++
	}
	var labels []string
	for _, f := range group[1:] {
		label := f.Subject
		before, rest, named := strings.Cut(f.Claim, f.Subject)
		if named {
			label += startPattern.FindString(rest)
		}
		if m := directionPattern.FindStringSubmatch(before + " " + rest); m != nil && len(subjects) < len(group) {
			label += " " + m[2]
			if m[1] != "" {
				label += m[1] + "s"
			}
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	if len(labels) > alsoNamed {
		labels = append(labels[:alsoNamed-1:alsoNamed-1], fmt.Sprintf("%d more", len(labels)-alsoNamed+1))
	}
	return strings.Join(labels, ", ")
}
