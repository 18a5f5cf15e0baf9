package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const setsNote = "A and B are geometric means over the runs. The interval holds the true ratio in 95 % of comparisons, for this number alone; the " +
	"verdict accounts for the numbers tested together (Holm). Noise: two runs of one set differ by no more in 95 % of pairs. " +
	"Would see: a difference of that size is called different in 95 % of comparisons. * The interval excludes ×1, but among " +
	"the numbers tested together chance alone gives such a one."

// setsTitle is the heading of a comparison.
func setsTitle(c *compare.Comparison) string {
	if c.Sets == nil {
		return fmt.Sprintf("Comparison of %d runs", len(c.Runs))
	}
	return fmt.Sprintf("Comparison of set A (%s) and set B (%s)", textio.Plural(c.Sets.Base, "run"), textio.Plural(len(c.Runs)-c.Sets.Base, "run"))
}

// setsTable has a row for each number of two sets.
func setsTable(s *compare.Sets) draw.Table {
	t := draw.Table{Heads: []string{"number", "window", "A", "B", "B ÷ A", "95 % interval", "noise", "would see", "verdict"}, Left: 2}
	for i := range s.Numbers {
		n := &s.Numbers[i]
		t.Add(n.Label(), document.WindowLabel(n.Window), quantityOf(n.BaseMean, n.Unit), quantityOf(n.NewMean, n.Unit), ratioText(n.Ratio),
			intervalText(n), shareText(n.Noise), shareText(n.Detectable), verdictText(n))
	}
	return t
}

func intervalText(n *compare.Number) string {
	if math.IsNaN(float64(n.Low)) {
		return "–"
	}
	return ratioText(n.Low) + " to " + ratioText(n.High)
}

func shareText(v result.Number) string {
	switch {
	case math.IsNaN(float64(v)):
		return "–"
	case v >= 9:
		return "over 10 times"
	}
	return unit.FormatPercent(float64(v))
}

func verdictText(n *compare.Number) string {
	switch {
	case n.Verdict == "":
		return "not compared: " + n.Reason
	case n.Verdict != compare.Different && (n.Low > 1 || n.High < 1):
		return string(n.Verdict) + " *"
	}
	return string(n.Verdict)
}

// countsTable has failures of workloads, run by run.
func countsTable(c *compare.Comparison) draw.Table {
	t := draw.Table{Heads: []string{"workload", "failures"}, Left: 2}
	for _, r := range c.Runs {
		t.Heads = append(t.Heads, r.Name)
	}
	for _, n := range c.Sets.Counts {
		row := []string{n.Workload, n.Name}
		for _, v := range slices.Concat(n.Base, n.New) {
			row = append(row, draw.Amount(float64(v), ""))
		}
		t.Add(row...)
	}
	return t
}

// setValues joins the values of a factor in the runs of one set, with the number of runs if they differ.
func setValues(values []string) string {
	var order []string
	count := map[string]int{}
	for _, v := range values {
		if v == "" {
			v = "–"
		}
		if count[v]++; count[v] == 1 {
			order = append(order, v)
		}
	}
	if len(order) == 1 {
		return order[0]
	}
	for i, v := range order {
		order[i] = fmt.Sprintf("%s (%s)", v, textio.Plural(count[v], "run"))
	}
	return textio.JoinAnd(order)
}

// printSets prints the comparison of two sets.
func printSets(p *textPage, c *compare.Comparison) {
	p.section("Is B different from A")
	if len(c.Sets.Numbers) == 0 {
		p.text("", "No number to compare.", nil)
	} else {
		t := setsTable(c.Sets)
		p.table(&t)
		p.text("", setsNote, p.Dim)
	}
	for _, text := range c.Sets.LeftOut {
		p.text("", text, p.Dim)
	}
	if len(c.Sets.Counts) > 0 {
		p.section("Failures")
		t := countsTable(c)
		p.table(&t)
	}
}
