package report

import (
	"strings"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/textio"
)

// briefNameMax is how many characters of a name the summary shows: names of hundreds would push the answers off the first screen. The
// full report has them whole.
const briefNameMax = 60

// shortNames clips the names in what the summary prints, in the middle: names that begin alike differ at their ends.
func shortNames(d *document.Document) {
	names := []string{d.Scenario.DisplayName, d.Scenario.Name, d.Label}
	for i := range d.Results {
		r := &d.Results[i]
		names = append(names, r.Name, r.Title, r.Workload, r.Group)
	}
	for i := range d.Workloads {
		names = append(names, d.Workloads[i].Name, d.Workloads[i].Group)
	}
	var pairs []string
	for _, name := range names {
		if utf8.RuneCountInString(name) > briefNameMax {
			pairs = append(pairs, name, textio.ClipMiddle(name, briefNameMax))
		}
	}
	if len(pairs) == 0 {
		return
	}
	short := strings.NewReplacer(pairs...)
	clip := func(texts ...*string) {
		for _, text := range texts {
			*text = short.Replace(*text)
		}
	}
	clip(&d.Scenario.DisplayName, &d.Scenario.Name, &d.Reason, &d.ValidityReason)
	for i := range d.Headlines {
		h := &d.Headlines[i]
		clip(&h.Title, &h.Result)
		for k := range h.Parts {
			clip(&h.Parts[k].Label)
		}
	}
	for i := range d.Impacts {
		clip(&d.Impacts[i].Sentence)
	}
	for i := range d.Measured {
		for k := range d.Measured[i].Workloads {
			clip(&d.Measured[i].Workloads[k])
		}
		for k := range d.Measured[i].Facts {
			clip(&d.Measured[i].Facts[k])
		}
	}
	for i := range d.Findings {
		clip(&d.Findings[i].Claim, &d.Findings[i].Subject)
	}
	for i := range d.Results {
		clip(&d.Results[i].Title, &d.Results[i].Name)
	}
	for i := range d.Workloads {
		clip(&d.Workloads[i].Name)
	}
}
