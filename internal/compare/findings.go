package compare

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/braggdev/bragg/internal/audit"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/textio"
)

// Finding is one finding of one run, or an identical finding of several runs.
type Finding struct {
	Runs []string `json:"runs"` // names: "A", "B"
	finding.Finding
}

// comparedFindings lists the findings of all runs, the worst first.
func comparedFindings(documents []*document.Document, names []string) []Finding {
	list := []Finding{}
	for i, d := range documents {
		name := names[i]
		for _, f := range d.Findings {
			at := slices.IndexFunc(list, func(known Finding) bool { return reflect.DeepEqual(known.Finding, f) })
			if at < 0 {
				list = append(list, Finding{Runs: []string{name}, Finding: f})
			} else if !slices.Contains(list[at].Runs, name) {
				list[at].Runs = append(list[at].Runs, name)
			}
		}
	}
	order := []finding.Severity{finding.Fail, finding.Undecided, finding.Warning, finding.Info}
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

// copies finds runs that are copies of one before them.
func copies(runs []*document.Run, names []string) []Finding {
	list := []Finding{}
	for i, r := range runs {
		for j, o := range runs[:i] {
			in := rule.Input{Manifest: r.Manifest, Summary: r.Summary, Others: []rule.Other{{Run: o.Manifest.Run, Loads: o.Summary.Loads}}}
			for _, f := range audit.AgainstOthers(in) {
				list = append(list, Finding{Runs: []string{names[j], names[i]}, Finding: f})
			}
		}
	}
	return list
}

// Of names the runs: "Run A", "Runs A and B".
func (f *Finding) Of() string {
	if len(f.Runs) == 1 {
		return "Run " + f.Runs[0]
	}
	return "Runs " + textio.JoinAnd(f.Runs)
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
	if c.Sets != nil {
		return c.findingsOfSets()
	}
	shown := make([]document.ShownFinding, len(c.Findings))
	for i := range c.Findings {
		shown[i] = document.ShownFinding{Of: c.Findings[i].Of() + ": ", Finding: c.Findings[i].Finding}
	}
	return document.JoinKinds(shown)
}

// findingsOfSets shows each kind of finding once, with the runs of each set that have it: repetitions have the same ones, in slightly
// different numbers.
func (c *Comparison) findingsOfSets() []document.ShownFinding {
	var shown []document.ShownFinding
	known := map[string]bool{}
	for i := range c.Findings {
		f := &c.Findings[i]
		if known[f.Code] {
			continue
		}
		known[f.Code] = true
		var in [2]int
		for run, r := range c.Runs {
			if slices.ContainsFunc(c.Findings, func(o Finding) bool { return o.Code == f.Code && slices.Contains(o.Runs, r.Name) }) {
				if run < c.Sets.Base {
					in[0]++
				} else {
					in[1]++
				}
			}
		}
		of := fmt.Sprintf("%d of %s of A, %d of %s of B, as %s: ", in[0], textio.Plural(c.Sets.Base, "run"), in[1],
			textio.Plural(len(c.Runs)-c.Sets.Base, "run"), f.Runs[0])
		shown = append(shown, document.ShownFinding{Of: of, Finding: f.Finding})
	}
	return shown
}
