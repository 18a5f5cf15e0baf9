package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

// noted makes a warning of every load whose engines have a note of a code.
func noted(in *rule.Input, code interval.NoteCode, advice string) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if found := l.Noted(code); len(found) > 0 {
			list = append(list, in.About(l, finding.Warning, advice, "%s: %s.", in.Name(l), found[0]))
		}
	}
	return list
}
