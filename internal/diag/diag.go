// Package diag has source positions, diagnostics with carets, and user errors.
//
// A parser collects a List of Diagnostics and continues; the caller prints the List with Render, or turns it into one error with
// List.Err. An Error is reported to the user once, by the command line: it has a stable code, a sentence, a hint and the exit
// code of the process. Library code returns errors and never prints or exits.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a text file. Line and Column count from 1; 0 means unknown. Column counts bytes.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String prints file:line:column without unknown parts.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Compare orders positions by file, line and column.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Severity is the severity of a Diagnostic; only an error stops the work.
type Severity string

const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Diagnostic is one problem in a text that a user wrote.
type Diagnostic struct {
	Code     string   `json:"code"` // stable, in kebab case: "unknown-key"
	Severity Severity `json:"severity"`
	Pos      Position `json:"position"`
	Width    int      `json:"width,omitempty"`  // bytes to underline from Pos.Column; 0 draws one caret
	Source   string   `json:"source,omitempty"` // the user's own line, without its line feed
	Rendered string   `json:"rendered,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do: "did you mean vcpus?"
}

// List is a set of diagnostics. The zero value is empty and ready to use.
type List []Diagnostic

// Add appends d; an empty severity means error.
func (l *List) Add(d Diagnostic) {
	if d.Severity == "" {
		d.Severity = SeverityError
	}
	*l = append(*l, d)
}

// Errorf appends an error at pos.
func (l *List) Errorf(pos Position, code, format string, args ...any) {
	l.Add(Diagnostic{Code: code, Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// Warnf appends a warning at pos.
func (l *List) Warnf(pos Position, code, format string, args ...any) {
	l.Add(Diagnostic{Code: code, Severity: SeverityWarning, Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// HasErrors reports whether any diagnostic is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == SeverityError })
}

// Sorted returns a copy ordered by position; diagnostics of one place keep their order.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Diagnostic) int { return a.Pos.Compare(b.Pos) })
	return out
}

// Err returns nil if the list has no error, otherwise a *ListError with the whole list.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return &ListError{List: l.Sorted()}
}

// ListError is a List as an error. Its text is the first error and the number of further ones.
type ListError struct{ List List }

func (e *ListError) Error() string {
	var first *Diagnostic
	more := -1
	for i := range e.List {
		if e.List[i].Severity != SeverityError {
			continue
		}
		if first == nil {
			first = &e.List[i]
		}
		more++
	}
	if first == nil {
		return "no error"
	}
	text := first.Message
	if at := first.Pos.String(); at != "" {
		text = at + ": " + text
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// ExitCode makes every List of errors end the process with ExitData.
func (e *ListError) ExitCode() int { return ExitData }

// Nearest returns the candidate most similar to word, or "" if none is similar enough to suggest. A prefix of only one candidate
// counts as similar, however much is missing.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", 1+len(word)/3
	begun := []string{}
	for _, c := range candidates {
		if len(word) >= beginningBytesMin && len(word) <= len(c) && strings.EqualFold(c[:len(word)], word) {
			begun = append(begun, c)
		}
		if abs(len(word)-len(c)) > bestDistance {
			continue // each byte of the difference costs one; a hostile word may be a megabyte
		}
		d := editDistance(strings.ToLower(word), strings.ToLower(c))
		if d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	if best == "" && len(begun) == 1 {
		return begun[0]
	}
	return best
}

// beginningBytesMin is the minimum length of a prefix for a suggestion.
const beginningBytesMin = 3

func abs(n int) int { return max(n, -n) }

// editDistance is the optimal string alignment distance: insert, delete, replace, swap of neighbors.
func editDistance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}

// Quoted lists at most most names: "a", "b" and 3 more.
func Quoted(names []string, most int) string {
	text := ""
	for i, n := range names {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(names)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q", n)
	}
	return text
}
