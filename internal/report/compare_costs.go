package report

import (
	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/draw"
)

const (
	costsSingle = "Single runs: chance cannot be distinguished from change. \"none seen (up to …)\": a larger one would have been seen in 95 % of " +
		"cases; ≥: it lasted until the load ended or the next event began."
	costsOfSets = "A and B are means over the runs, or the bounds of all of them where one is only a bound. The interval holds the true difference " +
		"of the means in 95 % of comparisons, for this number alone; the verdict accounts for the numbers of this table together. " +
		"\"none seen (up to …)\": a larger one would have been seen in 95 % of cases; ≥: it lasted until the load ended or the next event began."
	scalingSingle = "In brackets, the 95 % interval of each fit; it does not include run-to-run variance."
)

// costsNote is below the costs of events.
func costsNote(c *compare.Comparison) string {
	if c.Sets == nil {
		return costsSingle
	}
	return costsOfSets
}

// costsTable has a row for each number of each event and load.
func costsTable(c *compare.Comparison) draw.Table {
	t := draw.Table{Heads: append([]string{"event", "load", "cost"}, shiftHeads(c)...), Left: 3, Grouped: true}
	for i := range c.Costs {
		cost := &c.Costs[i]
		for j := range cost.Figures {
			t.Add(append([]string{cost.Title, cost.Load(), cost.Figures[j].Title}, shiftCells(c, &cost.Figures[j])...)...)
		}
	}
	return t
}

// scalingTable has a row for each number of the fits of runs that grow.
func scalingTable(c *compare.Comparison) draw.Table {
	t := draw.Table{Heads: append([]string{"scaling"}, shiftHeads(c)...), Left: 1}
	for i := range c.Scaling {
		t.Add(append([]string{c.Scaling[i].Title}, shiftCells(c, &c.Scaling[i])...)...)
	}
	return t
}

func shiftHeads(c *compare.Comparison) []string {
	if c.Sets != nil {
		return []string{"A", "B", "B − A", "95 % interval", "verdict"}
	}
	var heads []string
	for _, r := range c.Runs {
		heads = append(heads, r.Name)
	}
	for _, r := range c.Runs[1:] {
		heads = append(heads, r.Name+" − "+c.Runs[0].Name)
	}
	return heads
}

func shiftCells(c *compare.Comparison, s *compare.Shift) []string {
	if c.Sets == nil {
		var cells []string
		for i := range c.Runs {
			cells = append(cells, s.ValueText(i))
		}
		for i := range c.Runs[1:] {
			cells = append(cells, compare.SignedAmount(s.Unit, s.Differences[i+1]))
		}
		return cells
	}
	verdict := string(s.Verdict)
	if verdict == "" {
		verdict = "not compared: " + s.Reason
	}
	return []string{s.SpanText(0, c.Sets.Base), s.SpanText(c.Sets.Base, len(c.Runs)), compare.SignedAmount(s.Unit, s.Difference),
		s.IntervalText(float64(s.Low), float64(s.High)), verdict}
}

// printCosts prints what events cost, and the fits of runs that grow.
func printCosts(p *textPage, c *compare.Comparison) {
	if len(c.Costs) > 0 {
		p.section("What each event cost")
		t := costsTable(c)
		p.table(&t)
		p.text("", costsNote(c), p.Dim)
	}
	if len(c.Scaling) > 0 {
		p.section("Scaling")
		t := scalingTable(c)
		p.table(&t)
		if c.Sets == nil {
			p.text("", scalingSingle, p.Dim)
		}
	}
}
