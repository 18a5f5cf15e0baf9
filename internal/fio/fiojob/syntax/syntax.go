// Package syntax reads the language of fio's job files: sections, variables, lists, and numbers as they are meant or as fio reads
// them.
//
// It knows the names, kinds and classes of options but no job: package fiojob says what field an option sets.
//
//	text, words of a command line ──Lexer──▶ []RawSection of RawOption
//	RawOption ──Value.Expand──▶ text without variables ──Value.Number, Choice, Splits, …──▶ numbers, words, shares
//	what is wrong, or read otherwise by fio ──Value.Problem, Warn──▶ Problems
package syntax

import "github.com/braggdev/bragg/internal/diag"

// Reading selects the meaning of text that fio reads in a surprising way.
type Reading int

const (
	Meant  Reading = iota // what its author obviously meant, with a warning that names what fio makes of it
	Exact                 // what fio 3.33 makes of it, to the same values; a warning names what was probably meant
	Strict                // an error that names both
)

// Option is one line of a file.
type Option struct {
	Key   string // canonical: "bs", never "blocksize"
	Value string // as written, after environment and keywords, without blanks around it
	Exact string // the value as real fio must be given it to mean the same: "4096" for "4k" after a blank
	Bare  bool   // without "="
	// Numbers are the numbers of the value, in order, as they were read: one for each of a list.
	Numbers []Number
	Class   Class
	Why     string // for every class but Native and Unknown: the reason, a clause without a capital
	// Report says that the option only shapes fio's own output, logs and files; no generator needs it, fio neither.
	Report bool
	Pos    diag.Position

	// Of the text, for diagnostics.
	Source      string `json:"-"`
	KeyWidth    int    `json:"-"`
	ValueColumn int    `json:"-"`
}

// Class says how the native engine treats an option.
type Class string

const (
	Native   Class = "native"
	Ignored  Class = "ignored"  // accepted without effect; the table says why
	Delegate Class = "delegate" // only real fio has it
	Refused  Class = "refused"  // runs code or touches what it must not
	Unknown  Class = "unknown"
)

// Number is one number of an option: bytes, a count, microseconds for times, or a percentage.
type Number struct {
	Value   int64
	Percent bool
}

// Problems collects what is wrong, each thing once a place.
type Problems struct {
	Strict   bool // warnings are errors
	List     diag.List
	reported map[diag.Position]string // last message per place, so that one global option is not blamed per job
}

// Full reports whether what is reported from now on is left out.
func (p *Problems) Full() bool { return len(p.List) == problemsMax }

// Report adds a problem, once a place.
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
