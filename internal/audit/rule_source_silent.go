package audit

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var sourceSilent = rule.Rule{
	Code:    "source-silent",
	Summary: "a source of storage counters could not be read",
	Doc: "A source of the target file did not answer, refused the credential or answered in an unknown format. The charts of what the " +
		"storage counted have gaps at that time. Numbers of the load are not affected.",
	Example: `Source filer1 could not be read from 1:20 to 2:05: source "filer1": 503 Service Unavailable.`,
	Check:   checkSourceSilent,
}

func checkSourceSilent(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	at := map[string]int{}    // source → its finding
	open := map[string]bool{} // sources that cannot be read at this point
	for _, e := range in.Events {
		i, known := at[e.Subject]
		switch e.Kind {
		case interval.EventSourceSilent:
			if !known {
				i = len(list)
				at[e.Subject] = i
				list = append(list, finding.Finding{Severity: finding.Info, Subject: e.Subject, FromNanos: e.AtNanos,
					Advice: "Check the address, the credential and the rights of this source: bragg targets check FILE reads it once."})
			}
			open[e.Subject] = true
			if f := &list[i]; len(f.Evidence) < evidenceMax {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s", unit.FormatClock(e.AtNanos), e.Error))
			}
			list[i].ToNanos = in.Summary.Duration
		case interval.EventSourceBack:
			if known {
				open[e.Subject], list[i].ToNanos = false, e.AtNanos
			}
		}
	}
	for i := range list {
		f := &list[i]
		_, reason, _ := strings.Cut(f.Evidence[0], ": ")
		until := "to " + unit.FormatClock(f.ToNanos)
		if open[f.Subject] {
			until = "to the end of the run"
		}
		again := ""
		if n := len(f.Evidence); n > 1 {
			again = fmt.Sprintf(", with interruptions (%d times)", n)
		}
		f.Claim = fmt.Sprintf("Source %s could not be read from %s %s%s: %s.", f.Subject, unit.FormatClock(f.FromNanos), until, again,
			strings.TrimSuffix(reason, "."))
	}
	return list
}
