// Package jinja renders the part of the Jinja template language that scenarios need, from untrusted text.
//
// Expressions have Python's semantics: 4 / 2 is 2.0, -7 // 2 is -4, 'a' + 1 is an error. It supports loops, conditions, set,
// with, filters and tests; it does not support reading files, macros, calls out of the template, or randomness. Rendering is
// bounded in steps, in output and in the memory of its values, so it always ends. Every byte of the output has its origin in the
// template, and all faults are collected.
//
//	text ──scan──▶ segments ──parse──▶ statements ──check──▶ names known ──run──▶ output with origins
package jinja

import (
	"maps"
	"slices"
	"sort"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// Limits bound one rendering. Zero fields mean the defaults.
type Limits struct {
	Steps       int // evaluations of an expression or statement
	OutputBytes int
	ValueBytes  int // of all text and lists that expressions make, in total
}

// The defaults are far above the needs of any known scenario, which are a few thousand steps.
const (
	stepsDefault       = 1_000_000
	outputBytesDefault = 4 << 20
	valueBytesDefault  = 64 << 20
	faultsMax          = 20
)

// Fault is one problem, at a byte range of the template.
type Fault = syntax.Fault

// Span is the origin of a stretch of the output. It reaches to the Out of the next Span.
type Span struct {
	Out, Source int  // byte offsets
	Width       int  // bytes of the tag in the template; 0 for verbatim text
	Verbatim    bool // byte Out+i comes from byte Source+i
}

// Output is a rendered template.
type Output struct {
	Text  string
	spans []Span // ordered by Out
}

// Origin returns the byte of the template from which byte out of the output comes, and the width of the tag that computed it, or
// 0 if the text was copied.
func (o *Output) Origin(out int) (source, width int) {
	i := sort.Search(len(o.spans), func(i int) bool { return o.spans[i].Out > out }) - 1
	if i < 0 {
		return 0, 0
	}
	s := o.spans[i]
	if s.Verbatim {
		return s.Source + out - s.Out, 0
	}
	return s.Source, s.Width
}

// Render renders source with variables, which are nil, bool, int64, float64 or string. With faults the output is nil.
// Line ends must be single line feeds.
func Render(source string, variables map[string]any, limits Limits) (*Output, []syntax.Fault) {
	if limits.Steps == 0 {
		limits.Steps = stepsDefault
	}
	if limits.OutputBytes == 0 {
		limits.OutputBytes = outputBytesDefault
	}
	if limits.ValueBytes == 0 {
		limits.ValueBytes = valueBytesDefault
	}
	body, faults := syntax.Parse(source, &syntax.Words{Filters: slices.Sorted(maps.Keys(filters())), Tests: slices.Sorted(maps.Keys(testTable))})
	definesNames := func(f syntax.Fault) bool { return slices.Contains([]string{"macro", "import", "from"}, f.Subject) }
	if !slices.ContainsFunc(faults, definesNames) { // those tags are refused, so their names would only be reported as well
		faults = append(faults, checkNames(body, variables)...)
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b syntax.Fault) int { return a.Offset - b.Offset })
		return nil, faults[:min(len(faults), faultsMax)]
	}
	r := &renderer{machine: machine{budget: budget{limits: limits}, filters: filters()}, reported: map[int]bool{}}
	r.run(body, globals(variables))
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return &Output{Text: r.out.String(), spans: r.spans}, nil
}
