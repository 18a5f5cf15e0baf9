package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"

	"github.com/braggdev/bragg/internal/finding"
)

// briefFindingsMax bounds the findings of the short form; failures and doubts about the verdict always stand there.
const briefFindingsMax = 10

// briefFindings prints a line per kind of finding.
func (p *page) briefFindings(d *Document) {
	groups := findingGroups(d)
	if len(groups)+len(d.Caveats) > 0 {
		p.line("")
	}
	left := 0
	for i, group := range groups {
		f := group[0]
		paint := map[finding.Severity]func(string) string{
			finding.Fail: p.Bad, finding.Unknown: p.Doubt, finding.Warning: p.Doubt}[f.Severity]
		if i >= briefFindingsMax && f.Severity != finding.Fail && f.Severity != finding.Unknown {
			left += len(group)
			continue
		}
		head := string(f.Severity) + ": "
		if subject := subjectBeside(f); len(group) == 1 && subject != "" {
			head += subject + ": "
		}
		p.text("", head+sharedClaim(group, d)+" ["+f.Code+"]", paint)
	}
	if left > 0 {
		p.text("", fmt.Sprintf("… and %d more", left), nil)
	}
	for _, c := range d.Caveats {
		p.text("", "caveat: "+c, nil)
	}
}

// findingGroups puts findings of one code and severity together, worst first. What the lines above say anyway, the
// banner of a rehearsal and the reason of the verdict, is left out.
func findingGroups(d *Document) [][]finding.Finding {
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
	order := []finding.Severity{finding.Fail, finding.Unknown, finding.Warning, finding.Info}
	slices.SortStableFunc(groups, func(a, b []finding.Finding) int {
		return cmp.Compare(slices.Index(order, a[0].Severity), slices.Index(order, b[0].Severity))
	})
	return groups
}

// sharedClaim says what all findings of a group claim: their subjects together and their numbers as ranges. Where
// their sentences differ in more than that, it is the first claim and whom else it concerns.
func sharedClaim(group []finding.Finding, d *Document) string {
	first := group[0].Claim
	if len(group) == 1 {
		return first
	}
	var names []string
	rows := make([][]string, 0, len(group))
	for _, f := range group {
		if !slices.Contains(names, f.Subject) {
			names = append(names, f.Subject)
		}
		claim := f.Claim
		if f.Subject != "" {
			claim = strings.Replace(claim, f.Subject, subjectPlace, 1)
		}
		rows = append(rows, strings.Fields(claim))
	}
	text, merged := mergeSentences(rows)
	if merged && strings.Contains(text, subjectPlace) {
		return strings.Replace(text, subjectPlace, subjects(names, d), 1)
	}
	if slices.Contains(names, "") {
		return fmt.Sprintf("%s And %d more like it.", first, len(group)-1)
	}
	if len(names) < len(group) {
		return first + " And " + toldApart(group[1:]) + "."
	}
	return fmt.Sprintf("%s And %d more like it: %s.", first, len(group)-1, subjects(names[1:], d))
}

// startPattern matches what a claim says behind the name of a workload to tell its starts apart.
var startPattern = regexp.MustCompile(`^ \((?:start \d+|prefill)\)`)

// directionPattern matches the direction that a claim is about.
var directionPattern = regexp.MustCompile(`\b(read|write|trim)s?\b`)

// toldApart names findings by what differs where one subject has several: the start of the workload and the direction.
func toldApart(group []finding.Finding) string {
	var labels []string
	for _, f := range group {
		label := f.Subject
		before, rest, named := strings.Cut(f.Claim, f.Subject)
		if named {
			label += startPattern.FindString(rest)
		}
		if m := directionPattern.FindStringSubmatch(before + " " + rest); m != nil {
			label = m[1] + "s of " + label
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	if len(labels) > subjectsNamed {
		labels = append(labels[:subjectsNamed-1:subjectsNamed-1], fmt.Sprintf("%d more", len(labels)-subjectsNamed+1))
	}
	return draw.JoinAnd(labels)
}

// subjectPlace stands for the subject while sentences are compared; no readable text holds it.
const subjectPlace = "\x00"

const subjectsNamed = 3

// subjects names a few and counts many.
func subjects(names []string, d *Document) string {
	if len(names) <= subjectsNamed {
		return draw.JoinAnd(names)
	}
	for _, n := range names {
		if !slices.ContainsFunc(d.Workloads, func(w Workload) bool { return w.Name == n }) {
			return draw.JoinAnd(append(slices.Clone(names[:subjectsNamed-1]), fmt.Sprintf("%d more", len(names)-subjectsNamed+1)))
		}
	}
	return fmt.Sprintf("%d workloads", len(names))
}

// mergeSentences lays sentences over each other word by word; numbers that differ become ranges. It ends at the last
// comma before the first word that cannot be merged, and fails where there is none.
func mergeSentences(rows [][]string) (string, bool) {
	var out []string
	for len(rows[0]) > 0 {
		words, used := mergeNext(rows)
		if used == 0 {
			return closeSentence(out)
		}
		out = append(out, words)
		for i := range rows {
			rows[i] = rows[i][used:]
		}
	}
	for _, r := range rows {
		if len(r) > 0 {
			return closeSentence(out)
		}
	}
	return strings.Join(out, " "), true
}

func closeSentence(words []string) (string, bool) {
	text := strings.Join(words, " ")
	end := strings.LastIndex(text, ", ")
	if strings.HasSuffix(text, ",") {
		end = len(text) - 1
	}
	if end < 0 || strings.Count(text[:end], "(") != strings.Count(text[:end], ")") {
		return "", false
	}
	return text[:end] + ".", true
}

// mergeNext merges the next word of each row, or a number with its unit; used is 0 where they say different things.
func mergeNext(rows [][]string) (text string, used int) {
	same := true
	for _, r := range rows {
		if len(r) == 0 {
			return "", 0
		}
		same = same && r[0] == rows[0][0]
	}
	pair := slices.IndexFunc(rows, func(r []string) bool { return len(r) < 2 || timeUnits[trimMarks(r[1])] == 0 }) < 0
	if same && !pair {
		return rows[0][0], 1
	}
	low, high := rows[0], rows[0]
	for _, r := range rows {
		v, ok := wordValue(r, pair)
		if !ok && same {
			return rows[0][0], 1
		}
		if !ok {
			return "", 0
		}
		if l, _ := wordValue(low, pair); v < l {
			low = r
		}
		if h, _ := wordValue(high, pair); v > h {
			high = r
		}
	}
	if !pair {
		return strings.TrimRight(low[0], sentenceMarks) + " to " + strings.TrimLeft(high[0], "("), 1
	}
	unitName, last := trimMarks(low[1]), high[1]
	if trimMarks(last) != unitName {
		return low[0] + " " + unitName + " to " + strings.TrimLeft(high[0], "(") + " " + last, 2
	}
	if low[0] == high[0] {
		return low[0] + " " + last, 2
	}
	return low[0] + " to " + strings.TrimLeft(high[0], "(") + " " + last, 2
}

const sentenceMarks = ".,;:)"

func trimMarks(word string) string { return strings.TrimRight(word, sentenceMarks) }

// timeUnits lists units that change between sentences, in seconds.
var timeUnits = map[string]float64{"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}

// wordValue reads a number with its unit of time where pair is set.
func wordValue(r []string, pair bool) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(trimMarks(strings.TrimLeft(r[0], "(")), ",", ""), 64)
	if err != nil {
		return 0, false
	}
	if pair {
		v *= timeUnits[trimMarks(r[1])]
	}
	return v, true
}
