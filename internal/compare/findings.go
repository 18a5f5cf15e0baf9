package compare

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
)

// Finding is one finding of one run, or an identical finding of several runs.
type Finding struct {
	Runs []string `json:"runs"` // names: "A", "B"
	finding.Finding
}

// comparedFindings lists the findings of all runs, the worst first.
func comparedFindings(documents []*document.Document) []Finding {
	list := []Finding{}
	for i, d := range documents {
		name := runName(i)
		for _, f := range d.Findings {
			at := slices.IndexFunc(list, func(known Finding) bool { return reflect.DeepEqual(known.Finding, f) })
			if at < 0 {
				list = append(list, Finding{Runs: []string{name}, Finding: f})
			} else if !slices.Contains(list[at].Runs, name) {
				list[at].Runs = append(list[at].Runs, name)
			}
		}
	}
	order := []finding.Severity{finding.Fail, finding.Unknown, finding.Warning, finding.Info}
	// Findings of one kind are grouped, so that a problem of both runs appears in one place.
	kind := map[string]int{}
	for i, f := range list {
		if _, known := kind[f.Code]; !known {
			kind[f.Code] = i
		}
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)), cmp.Compare(kind[a.Code], kind[b.Code]))
	})
	return list
}

// runName names a run in tables and charts.
func runName(index int) string { return string(rune('A' + index)) }

// Of names the runs: "Run A", "Runs A and B".
func (f *Finding) Of() string {
	if len(f.Runs) == 1 {
		return "Run " + f.Runs[0]
	}
	return "Runs " + draw.JoinAnd(f.Runs)
}

// harmless are factors that change no number.
var harmless = []string{"label", "seed"}

// Calm is the sentence for a comparison without known problems; otherwise it is empty.
func (c *Comparison) Calm() string {
	if len(c.Warnings)+len(c.Findings) > 0 {
		return ""
	}
	if slices.ContainsFunc(c.Factors, func(f Factor) bool { return !slices.Contains(harmless, f.Name) }) {
		return "No warnings and no findings. Factors that differ are listed below."
	}
	return "No recorded difference affects this comparison."
}

// ShownFindings are the findings of all runs as a page or a terminal shows them.
func (c *Comparison) ShownFindings() []document.ShownFinding {
	shown := make([]document.ShownFinding, len(c.Findings))
	for i := range c.Findings {
		shown[i] = document.ShownFinding{Of: c.Findings[i].Of() + ": ", Finding: c.Findings[i].Finding}
	}
	return document.JoinKinds(shown)
}
