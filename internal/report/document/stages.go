package document

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
)

// StagesNote says what the numbers of results are where stages are shown.
const StagesNote = "Over all VMs, without the beginning or the warm-up of each stage. The results below are of the whole load, with warm-ups and pauses."

// StagesTable has a row for each stage of a load, at most rowsMax; 0: all.
func StagesTable(s *result.Stages, rowsMax int) draw.Table {
	t := draw.Table{Heads: []string{StagesName(s), "rate", "bandwidth", "mean", "median", "p99"}, Left: 1}
	for i := range s.List {
		one := &s.List[i]
		if rowsMax > 0 && i == rowsMax && len(s.List) > rowsMax {
			t.Add(fmt.Sprintf("… %d more", len(s.List)-i), "", "", "", "", "")
			break
		}
		p99 := draw.Quantity(float64(one.P99), "ns")
		if one.AtLeast {
			p99 = "≥ " + p99
		}
		bandwidth := "–"
		if one.Bytes > 0 {
			bandwidth = draw.Quantity(float64(one.Bytes), "B/s")
		}
		t.Add(one.Name, draw.Quantity(float64(one.Rate), s.Unit), bandwidth, draw.Quantity(float64(one.Mean), "ns"), draw.Quantity(float64(one.Median), "ns"), p99)
	}
	return t
}

// StagesName names the load.
func StagesName(s *result.Stages) string {
	if s.Instance > 1 {
		return fmt.Sprintf("%s (start %d)", s.Workload, s.Instance)
	}
	return s.Workload
}

// staged reports whether a result is the mean over stages that are shown one by one.
func (d *Document) staged(r *Result) bool {
	return r.Workload != "" && r.Type != "errors" && slices.ContainsFunc(d.Stages, func(s result.Stages) bool { return s.Workload == r.Workload })
}
