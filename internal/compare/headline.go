package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// singleRuns is the headline of a comparison of single runs.
const singleRuns = "Single runs: chance cannot be distinguished from change. Repeat each at least three times and compare the sets (--base, --new)."

// singleHeadline answers for single runs: nothing, and even less if a run is INVALID.
func singleHeadline(c *Comparison) string {
	if doubt := invalidRuns(c.Runs); doubt != "" {
		return "Undecided: " + doubt + " " + singleRuns
	}
	return singleRuns
}

// NoDifference is the sentence for single runs without a difference in Largest: that is an answer only if there are figures to compare,
// and nothing makes them unknown.
func (c *Comparison) NoDifference() string {
	compared := 0
	count := func(figures []Figure) {
		for i := range figures {
			for _, v := range figures[i].Differences[1:] {
				if !math.IsNaN(float64(v)) {
					compared++
				}
			}
		}
	}
	for i := range c.Results {
		for j := range c.Results[i].Rows {
			count(c.Results[i].Rows[j].Figures)
		}
	}
	for i := range c.Loads {
		count(c.Loads[i].Figures)
	}
	if compared == 0 {
		return "No figure can be compared: the runs have none in common that is known."
	}
	but := invalidRuns(c.Runs)
	if at := slices.IndexFunc(c.Findings, func(f Finding) bool { return f.Severity == finding.Undecided }); but == "" && at >= 0 {
		f := &c.Findings[at]
		but = strings.ToLower(f.Of()[:1]) + f.Of()[1:] + ": " + f.Claim
	}
	if but != "" {
		return "No known figure differs, which decides nothing: " + but
	}
	return "No figure differs."
}

// namedMax is the number of differences that a headline names.
const namedMax = 3

// headline answers in one or two sentences whether B is different from A.
func (s *Sets) headline(c *Comparison) string {
	if doubt := invalidRuns(c.Runs); doubt != "" {
		return "Undecided: " + doubt
	}
	of := map[Verdict][]*Number{}
	for i := range s.Numbers {
		of[s.Numbers[i].Verdict] = append(of[s.Numbers[i].Verdict], &s.Numbers[i])
	}
	different, same, few := of[Different], of[NoneSeen], of[TooFew]
	var text string
	switch {
	case len(different) > 0:
		text = fmt.Sprintf("B is different from A in %d of %s: %s", len(different), textio.Plural(len(s.Numbers), "number"), named(different))
	case len(same) > 0:
		best := slices.MinFunc(same, func(a, b *Number) int { return cmp.Compare(a.Detectable, b.Detectable) })
		worst := slices.MaxFunc(same, func(a, b *Number) int { return cmp.Compare(a.Detectable, b.Detectable) })
		text = fmt.Sprintf("No difference seen between A and B in %s; would have seen %s of %s", textio.Plural(len(same), "number"),
			unit.FormatPercent(float64(best.Detectable)), best.Label())
		if worst != best {
			text += fmt.Sprintf(", and %s of %s", unit.FormatPercent(float64(worst.Detectable)), worst.Label())
		}
		text += "."
		if len(few) > 0 {
			text += fmt.Sprintf(" The runs are too few for %s.", textio.Plural(len(few), "other number"))
		}
	case len(few) > 0 && s.Tested == 0:
		return fmt.Sprintf("Too few runs: %s of A and %s of B; chance cannot be distinguished from change. Repeat each at least three times.",
			textio.Plural(s.Base, "run"), textio.Plural(len(c.Runs)-s.Base, "run"))
	case len(few) > 0:
		text = fmt.Sprintf("Too few runs for what they vary: in %s even a change to the double or the half may go unseen.", textio.Plural(len(few), "number"))
	default:
		return "Undecided: A and B have no number in common that can be compared."
	}
	if s.Tested > 1 {
		text += fmt.Sprintf(" %d numbers were tested together, with a chance of at most 5 %% that any difference is a false alarm.", s.Tested)
	}
	return text + c.costHeadline() + s.newFailures()
}

// named lists the largest differences.
func named(different []*Number) string {
	different = slices.Clone(different)
	slices.SortStableFunc(different, func(a, b *Number) int {
		return cmp.Compare(math.Abs(math.Log(float64(b.Ratio))), math.Abs(math.Log(float64(a.Ratio))))
	})
	var parts []string
	for _, n := range different[:min(len(different), namedMax)] {
		parts = append(parts, n.Label()+n.when()+", is "+n.Change())
	}
	text := strings.Join(parts, "; ")
	if more := len(different) - namedMax; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "."
}

func (n *Number) when() string {
	if n.Window == "" {
		return ""
	}
	return " (" + n.Window + ")"
}

// Change is the difference of B as a sentence has it: "12.1 % lower (95 %: 10.1 to 14 %)"; of an interval that contains no
// difference, "2.1 % higher (95 %: −1.2 to +5.5 %)".
func (n *Number) Change() string {
	ratio, low, high := float64(n.Ratio), float64(n.Low), float64(n.High)
	word := "higher"
	if ratio < 1 {
		word = "lower"
	}
	text := unit.FormatPercent(math.Abs(ratio-1)) + " " + word
	switch {
	case math.IsNaN(low):
	case low > 1:
		text += fmt.Sprintf(" (95 %%: %s to %s)", bare(low-1), unit.FormatPercent(high-1))
	case high < 1:
		text += fmt.Sprintf(" (95 %%: %s to %s)", bare(1-high), unit.FormatPercent(1-low))
	default:
		text += fmt.Sprintf(" (95 %%: %s to %s)", bare(low-1), draw.Signed(unit.FormatPercent(high-1)))
	}
	return text
}

// bare is a percentage without its sign: the second of a range has it.
func bare(share float64) string {
	text := strings.TrimSuffix(unit.FormatPercent(share), " %")
	if share < 0 {
		return draw.Signed(text)
	}
	return text
}

// newFailures tells of failures that all runs of one set have and none of the other.
func (s *Sets) newFailures() string {
	text := ""
	for _, n := range s.Counts {
		all := func(values []result.Number, failed bool) bool {
			return !slices.ContainsFunc(values, func(v result.Number) bool { return v > 0 != failed })
		}
		switch {
		case all(n.Base, false) && all(n.New, true):
			text += fmt.Sprintf(" Every run of B has %s in %s, no run of A.", failures(n.Name), n.Workload)
		case all(n.Base, true) && all(n.New, false):
			text += fmt.Sprintf(" Every run of A has %s in %s, no run of B.", failures(n.Name), n.Workload)
		}
	}
	return text
}

func failures(name string) string {
	if name == figureDropped {
		return "dropped operations"
	}
	return name
}

// invalidRuns is a sentence on runs whose numbers decide nothing; empty if there are none.
func invalidRuns(runs []Run) string {
	var names []string
	reason := ""
	for _, r := range runs {
		if r.Validity == result.Invalid {
			names = append(names, r.Name)
			reason = cmp.Or(reason, r.ValidityReason)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("run %s is INVALID: %s", names[0], reason)
	}
	return fmt.Sprintf("runs %s are INVALID: %s", textio.JoinAnd(names), reason)
}

// factorWarnings tells of factors that differ within a set, whose runs are not repetitions then, and of more than one that differs
// between the sets: a difference cannot be attributed to one of them.
func (s *Sets) factorWarnings(factors []Factor) []string {
	list := []string{}
	var between []string
	for _, f := range factors {
		if slices.Contains(harmless, f.Name) {
			continue
		}
		mixed := false
		for set, values := range [][]string{f.Values[:s.Base], f.Values[s.Base:]} {
			if len(slices.Compact(slices.Sorted(slices.Values(values)))) > 1 {
				mixed = true
				list = append(list, fmt.Sprintf("The runs of set %c are not repetitions: they differ in %s.", 'A'+set, f.Name))
			}
		}
		// The text of a scenario contains the values of its variables.
		if !mixed && f.Name != "scenario hash" {
			between = append(between, f.Name)
		}
	}
	if len(between) > 1 {
		list = append(list, fmt.Sprintf("A and B differ in %d factors (%s): a difference cannot be attributed to one of them.",
			len(between), textio.JoinAnd(between)))
	}
	return list
}
