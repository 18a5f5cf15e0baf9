package lint

import (
	"unicode"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleReader = Rule{
	Code:     "reader",
	Severity: finding.Warning,
	Summary:  "Warnings of the parser: unused variables, keys without effect.",
	Doc:      "The findings carry the codes of these warnings, such as unused-variable and useless-key.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, d := range f.Scenario.Warnings {
			found := fromDiagnostic(d)
			found.Code, found.Severity, found.Claim = d.Code, finding.Warning, asSentence(d.Message)
			out = append(out, found)
		}
		return out
	},
}

// asSentence gives a message the form of a claim.
func asSentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + message[size:] + "."
}
