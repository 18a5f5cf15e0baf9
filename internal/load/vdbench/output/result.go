package output

import (
	"regexp"
	"strings"
)

// Result is how vdbench ended, by what it printed.
type Result struct {
	Completed bool     // it printed so
	Errors    []string // the first lines about errors
}

const completed = "Vdbench execution completed successfully"

// faultPattern finds lines about errors.
var faultPattern = regexp.MustCompile(`RuntimeException|java\.lang\.|Data Validation error|Vdbench terminating|Heartbeat monitor:|marked in error: *[1-9]`)

// ioPattern finds lines about one failed operation, of raw I/O and of files. The first one says what failed.
var ioPattern = regexp.MustCompile(`\berrno: |^Error: +[A-Z]`)

// Bounds of what is quoted.
const (
	errorsMax     = 4
	errorBytesMax = 300
)

// Judge reads what vdbench printed. If that was cut, it has not completed.
func Judge(text string) (r Result) {
	failed := false // an operation
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		if strings.Contains(body, completed) {
			r.Completed = r.Completed || whole
			continue
		}
		io := ioPattern.MatchString(body)
		if len(r.Errors) < errorsMax && (io && !failed || faultPattern.MatchString(body)) {
			failed = failed || io
			r.Errors = append(r.Errors, strings.ToValidUTF8(strings.TrimSpace(body[:min(len(body), errorBytesMax)]), "\uFFFD"))
		}
	}
	return r
}

// Good reports whether the numbers count.
func (r Result) Good() bool { return r.Completed && len(r.Errors) == 0 }
