// Package syntax reads the language of fio's job files: sections, variables, lists, and numbers, as their author meant them
// or as fio reads them.
//
// It has the names, kinds and classes of options, but no jobs: package fiojob defines the field that an option sets.
//
//	text, words of a command line ──Lexer──▶ []RawSection of RawOption
//	RawOption ──Value.Expand──▶ text without variables ──Value.Number, Choice, Splits, …──▶ numbers, words, shares
//	what is wrong, or read otherwise by fio ──Value.Problem, Warn──▶ Problems
package syntax

import "github.com/braggdev/bragg/internal/diag"

// Reading selects the meaning of text that fio reads in a surprising way.
type Reading int

const (
	Meant  Reading = iota // what its author obviously meant, with a warning that names fio's reading
	Exact                 // the values that fio 3.33 reads; a warning names what was probably meant
	Strict                // an error that names both
)

// Option is one line of a file.
type Option struct {
	Key   string // canonical: "bs", never "blocksize"
	Value string // as written, after environment and keywords, without blanks around it
	Exact string // the value that means the same to fio: "4096" for "4k" after a blank
	Bare  bool   // without "="
	// Numbers are the numbers of the value as they were read, in the order of the list.
	Numbers []Number
	Class   Class
	Why     string // the reason, a clause without a capital, for every class except Native and Unknown
	// Report says that the option only affects fio's own output, logs and files; neither a generator nor fio needs it.
	Report bool
	Pos    diag.Position

	// Of the text, for diagnostics.
	Source      string `json:"-"`
	KeyWidth    int    `json:"-"`
	ValueColumn int    `json:"-"`
}

// Class defines how the native engine treats an option.
type Class string

const (
	Native   Class = "native"
	Ignored  Class = "ignored"  // accepted without effect; the table has the reason
	Delegate Class = "delegate" // only fio itself supports it
	Refused  Class = "refused"  // runs code or accesses what it must not
	Unknown  Class = "unknown"
)

// Number is one number of an option: bytes, a count, microseconds for times, or a percentage.
type Number struct {
	Value   int64
	Percent bool
}

// Problems collects problems, each only once per place.
type Problems struct {
	Strict   bool // warnings are errors
	List     diag.List
	reported map[diag.Position]string // last message per place, so that a problem in [global] is not reported for every job
}

// Full reports whether further problems are dropped.
func (p *Problems) Full() bool { return len(p.List) == problemsMax }

// Report adds a problem, once per place.
func (p *Problems) Report(d diag.Diagnostic) {
	if d.Severity == diag.SeverityWarning && p.Strict {
		d.Severity = diag.SeverityError
	}
	switch {
	case p.Full() || p.reported[d.Pos] == d.Message:
		return
	case len(p.List) == problemsMax-1:
		d = diag.Diagnostic{Code: "too-many-problems", Pos: d.Pos, Message: "more problems are not shown"}
	}
	if p.reported == nil {
		p.reported = map[diag.Position]string{}
	}
	p.reported[d.Pos] = d.Message
	p.List.Add(d)
}
