package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
)

var ruleJobFile = Rule{
	Code:     "job-file",
	Severity: finding.Fail,
	Summary:  "A job file has an error, or an option that only fio supports.",
	Doc:      "A workload with an error in its job file cannot start. Options that the native engine does not support require --engine fio.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			j := f.files[name]
			out = append(out, once(j.list)...)
			for _, found := range once(j.file.Unsupported()) {
				found.Severity = finding.Info
				out = append(out, found)
			}
		}
		return out
	},
}

// once turns diagnostics into findings; a fault that a file repeats in each job is reported once, with the number of its
// lines.
func once(list diag.List) []finding.Finding {
	var out []finding.Finding
	first, more := map[string]int{}, map[int]int{}
	for _, d := range list {
		if i, seen := first[d.Message]; seen {
			more[i]++
			continue
		}
		first[d.Message] = len(out)
		out = append(out, fromDiagnostic(d))
	}
	for i, n := range more {
		out[i].Evidence = append(out[i].Evidence, fmt.Sprintf("and in %d more lines of the file", n))
	}
	return out
}

func fromDiagnostic(d diag.Diagnostic) finding.Finding {
	found := finding.Finding{Subject: d.Pos.File, Claim: d.Message + ".", Advice: d.Hint, Pos: &d.Pos}
	if d.Severity != diag.SeverityError {
		found.Severity = finding.Info
	}
	return found
}
