// Package parmfile reads parameter files of vdbench: general parameters, hosts, storage, workloads and runs, in that order.
//
//	text, variables ──Parse──▶ File: Definitions with what they inherit from "default", and every problem with a position
//	File.Select, Definition.Size, Loop, Mix … ──▶ names and values, as vdbench means them
//
// It only reads: what a run does, and whether another engine can do the same, is package vdbench. A key that vdbench does not have is
// an error. Text after the first blank of a line is a comment, as in vdbench; text there that looks like a parameter gets a warning.
package parmfile

import (
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Kind is the kind of a definition.
type Kind string

// The kinds, in the order in which vdbench wants them. General parameters come before all.
const (
	General    Kind = "general"
	Host       Kind = "hd"
	Replay     Kind = "rg"
	Storage    Kind = "sd"
	FileSystem Kind = "fsd"
	Workload   Kind = "wd"
	FileWork   Kind = "fwd"
	Run        Kind = "rd"
)

var kinds = []Kind{General, Host, Replay, Storage, FileSystem, Workload, FileWork, Run}

// rank orders kinds; sd and fsd, wd and fwd may be mixed.
var rank = map[Kind]int{General: 0, Host: 1, Replay: 2, Storage: 3, FileSystem: 3, Workload: 4, FileWork: 4, Run: 5}

// defaultName is the definition whose parameters all later ones of its kind inherit.
const defaultName = "default"

// Word is a piece of the text.
type Word struct {
	Text string
	Pos  diag.Position
}

// Parameter is one key with its values. Key is the full name, whatever abbreviation is in the text.
type Parameter struct {
	Key    Word
	Values []Word
	List   bool // written in parentheses
}

// Definition is one hd=, sd=, fsd=, wd=, fwd= or rd=, or all general parameters.
type Definition struct {
	Kind       Kind
	Name       Word
	Parameters []Parameter // inherited ones first
}

// File is a parameter file.
type File struct {
	Name        string
	General     Definition
	Definitions []Definition // without defaults
	Defaults    map[Kind][]Parameter
	Issues      diag.List // errors and warnings
	lines       []string
	used        map[string]bool // variables
	expanded    int             // bytes of their values
}

// Bounds of hostile files.
const (
	definitionsMax = 10_000
	loopMax        = 10_000
	bytesMax       = 4 << 20
)

// Parse reads a file. Variables replace $name and !name. The File has what could be read; Issues.Err reports errors.
func Parse(name, text string, variables map[string]string) *File {
	f := &File{Name: name, General: Definition{Kind: General}, used: map[string]bool{}, Defaults: map[Kind][]Parameter{}}
	if len(text) > bytesMax {
		f.Issues.Errorf(diag.Position{File: name}, "too-long", "parameter file of %d bytes, at most %d are read", len(text), bytesMax)
		return f
	}
	f.lines = strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	state := builder{File: f}
	for _, s := range f.statements(variables) {
		state.statement(s)
	}
	for _, v := range sortedKeys(variables) {
		if !f.used[v] {
			f.Issues.Errorf(diag.Position{File: name}, "unused-variable", "variable %q is set and not in the parameter file", v)
		}
	}
	f.traps()
	return f
}

// Of returns the definitions of a kind, in order.
func (f *File) Of(kind Kind) (found []*Definition) {
	for i := range f.Definitions {
		if f.Definitions[i].Kind == kind {
			found = append(found, &f.Definitions[i])
		}
	}
	return found
}

// issuesMax bounds what is said about a hostile file.
const issuesMax = 1000

// At adds what a caller has to say about a place of the file.
func (f *File) At(w Word, severity diag.Severity, code, message, hint string) {
	if len(f.Issues) >= issuesMax && f.Issues.HasErrors() {
		return
	}
	d := diag.Diagnostic{Code: code, Severity: severity, Pos: w.Pos, Width: len(w.Text), Message: message, Hint: hint}
	if n := w.Pos.Line; n > 0 && n <= len(f.lines) {
		d.Source = strings.ToValidUTF8(f.lines[n-1], "\uFFFD")
	}
	f.Issues.Add(d)
}

func (f *File) fault(w Word, code, message, hint string) {
	f.At(w, diag.SeverityError, code, message, hint)
}

// Get returns the last parameter with a key.
func (d *Definition) Get(key string) (Parameter, bool) {
	for i := len(d.Parameters) - 1; i >= 0; i-- {
		if d.Parameters[i].Key.Text == key {
			return d.Parameters[i], true
		}
	}
	return Parameter{}, false
}

// Word returns the first value of a key, an empty word with the place of the definition without it.
func (d *Definition) Word(key string) Word {
	if p, ok := d.Get(key); ok {
		return p.Values[0]
	}
	return Word{Pos: d.Name.Pos}
}

// Text returns the first value of a key.
func (d *Definition) Text(key, fallback string) string {
	if w := d.Word(key); w.Text != "" {
		return w.Text
	}
	return fallback
}

// builder makes definitions of statements.
type builder struct {
	*File
	kind Kind // of the definition before
}

// statement takes the parameters of one logical line.
func (b *builder) statement(words []Parameter) {
	first := words[0]
	kind := Kind(strings.ToLower(first.Key.Text))
	if kind == General || !slices.Contains(kinds, kind) {
		b.general(words)
		return
	}
	if rank[kind] < rank[b.kind] {
		b.fault(first.Key, "order", string(kind)+"= after "+string(b.kind)+"=", "the order is general parameters, hd, rg, sd or fsd, wd or fwd, rd")
	} else {
		b.kind = kind
	}
	name := first.Values[0]
	if first.List || name.Text == "" || strings.ContainsAny(name.Text, "*,()") {
		b.fault(name, "bad-name", "invalid name "+quote(name.Text)+" of "+string(kind)+"=", "")
	}
	own := b.check(kind, words[1:])
	if name.Text == defaultName {
		b.Defaults[kind] = inherit(b.Defaults[kind], own)
		return
	}
	for _, other := range b.Of(kind) {
		if other.Name.Text == name.Text {
			b.fault(name, "defined-twice", string(kind)+"="+name.Text+" is defined twice", "")
			return
		}
	}
	if len(b.Definitions) < definitionsMax {
		b.Definitions = append(b.Definitions, b.several(Definition{Kind: kind, Name: name, Parameters: inherit(b.Defaults[kind], own)})...)
	} else if len(b.Definitions) == definitionsMax {
		b.fault(name, "too-many", "too many definitions", "")
	}
}

// general takes parameters before all definitions.
func (b *builder) general(words []Parameter) {
	if b.kind != "" {
		w := words[0].Key
		hint := "general parameters come first; a definition goes on where the line before ends in a comma"
		if near := diag.Nearest(w.Text, kindNames()); near != "" {
			hint = "did you mean " + quote(near) + "? " + hint
		}
		b.fault(w, "order", quote(w.Text)+" begins neither a definition nor a continued one", hint)
		return
	}
	b.General.Parameters = append(b.General.Parameters, b.check(General, words)...)
}

// check replaces abbreviations by full keys and reports keys and values that vdbench does not have.
func (b *builder) check(kind Kind, words []Parameter) (known []Parameter) {
	for _, p := range words {
		s, problem, hint := find(kind, p.Key.Text)
		if problem != "" {
			b.fault(p.Key, "unknown-key", problem, hint)
			continue
		}
		if repeats := func(o Parameter) bool { return o.Key.Text == s.key }; !s.repeats && slices.ContainsFunc(known, repeats) {
			b.fault(p.Key, "given-twice", quote(s.key)+" is given twice", "")
			continue
		}
		p.Key.Text = s.key
		if problem := s.check(p); problem != "" {
			b.fault(p.Values[0], "bad-value", s.key+": "+problem, "")
			continue
		}
		known = append(known, p)
	}
	return known
}

// inherit puts parameters in place of the defaults with their key.
func inherit(defaults, own []Parameter) []Parameter {
	merged := slices.DeleteFunc(slices.Clone(defaults), func(p Parameter) bool {
		return slices.ContainsFunc(own, func(o Parameter) bool { return o.Key.Text == p.Key.Text })
	})
	return append(merged, own...)
}

func kindNames() (names []string) {
	for _, k := range kinds[1:] {
		names = append(names, string(k))
	}
	return names
}
