// Package parmfile reads parameter files of vdbench: general parameters, hosts, storage, workloads and runs, in that order.
//
//	text, variables ──Parse──▶ File: Definitions with what they inherit from "default", and every problem with a position
//	File.Select, Definition.Size, Loop, Mix … ──▶ names and values, as vdbench means them
//
// It only reads: what a run does, and whether another engine can do the same, is package vdbench. A key that vdbench does not have is
// an error. Text after the first blank of a line is a comment, as in vdbench; text there that looks like a parameter gets a warning.
package parmfile

import (
	"fmt"
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
	Text   string
	Pos    diag.Position
	Quoted bool // in quotation marks, which Text does not have
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
	selected    int             // definitions by all names
}

// Bounds of hostile files.
const (
	definitionsMax = 20_000
	loopMax        = 10_000
	selectedMax    = 1_000_000
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
	state := builder{File: f, names: map[[2]string]bool{}}
	for _, s := range f.statements(variables) {
		state.statement(s)
	}
	state.define()
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
	if len(f.Issues) >= issuesMax && (severity != diag.SeverityError || f.Issues.HasErrors()) {
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
	kind  Kind // of the definition before
	open  []Parameter
	names map[[2]string]bool // kinds and names of definitions
}

// statement takes the parameters of one logical line. Lines do not bound definitions in vdbench: one ends where the next one begins.
func (b *builder) statement(words []Parameter) {
	words = slices.DeleteFunc(words, func(p Parameter) bool {
		if p.Key.Text != "include" {
			return false
		}
		b.General.Parameters = append(b.General.Parameters, p) // at any place
		return true
	})
	if len(words) == 0 {
		return
	}
	if key, current := words[0].Key, b.current(); !isKind(key.Text) && current != General {
		if _, problem, _ := find(current, key.Text); problem != "" {
			b.strange(key)
			return
		}
	}
	if isKind(words[0].Key.Text) && !b.allTaken(words) {
		b.define()
	}
	for _, p := range words {
		if isKind(p.Key.Text) && !takes(b.current(), p.Key.Text) {
			b.define()
		}
		b.open = append(b.open, p)
	}
}

// current is the kind of the open definition.
func (b *builder) current() Kind {
	if len(b.open) > 0 && isKind(b.open[0].Key.Text) {
		return Kind(b.open[0].Key.Text)
	}
	return General
}

// allTaken reports whether a line that begins with sd=, wd= or the like continues the open definition: vdbench takes it for that, even
// where its author means a new definition at a wrong place. Then it has parameters that the open one does not have.
func (b *builder) allTaken(words []Parameter) bool {
	for _, p := range words {
		if isKind(p.Key.Text) {
			if !takes(b.current(), p.Key.Text) {
				return true // the next definition
			}
		} else if _, problem, _ := find(b.current(), p.Key.Text); problem != "" {
			return false
		}
	}
	return true
}

// strange reports a line that neither begins a definition nor continues one.
func (b *builder) strange(key Word) {
	hint := "general parameters come first, before all definitions"
	if near := diag.Nearest(key.Text, kindNames()); near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	b.fault(key, "order", fmt.Sprintf("%s begins no definition, and %s has no such parameter", quote(key.Text), b.current()), hint)
}

// define closes the open definition.
func (b *builder) define() {
	words, kind := b.open, b.current()
	if b.open = nil; len(words) == 0 {
		return
	}
	if kind == General {
		b.General.Parameters = append(b.General.Parameters, b.check(General, words)...)
		return
	}
	if rank[kind] < rank[b.kind] {
		b.fault(words[0].Key, "order", string(kind)+"= after "+string(b.kind)+"=", "the order is general parameters, hd, rg, sd or fsd, wd or fwd, rd")
	} else {
		b.kind = kind
	}
	name := words[0].Values[0]
	if words[0].List || name.Text == "" || strings.ContainsAny(name.Text, "*,()") {
		b.fault(name, "bad-name", "invalid name "+quote(name.Text)+" of "+string(kind)+"=", "")
	}
	own := b.check(kind, words[1:])
	if name.Text == defaultName {
		b.Defaults[kind] = b.inherit(b.Defaults[kind], own)
		return
	}
	for _, d := range b.several(Definition{Kind: kind, Name: name, Parameters: b.inherit(b.Defaults[kind], own)}) {
		b.add(d)
	}
}

// add adds a definition, of which there is one of each kind and name.
func (b *builder) add(d Definition) {
	key := [2]string{string(d.Kind), d.Name.Text}
	switch {
	case b.names[key]:
		b.fault(d.Name, "defined-twice", fmt.Sprintf("%s=%s is defined twice", d.Kind, d.Name.Text), "")
	case len(b.Definitions) >= definitionsMax:
		b.fault(d.Name, "too-many", "too many definitions", "")
	default:
		b.names[key] = true
		b.Definitions = append(b.Definitions, d)
	}
}

// check replaces abbreviations by full keys and reports keys and values that vdbench does not have.
func (b *builder) check(kind Kind, words []Parameter) (known []Parameter) {
	for _, p := range words {
		s, problem, hint := find(kind, p.Key.Text)
		if problem != "" {
			b.fault(p.Key, "unknown-key", problem, hint)
			continue
		}
		p.Key.Text = s.key
		if problem := s.check(p); problem != "" {
			b.fault(p.Values[0], "bad-value", s.key+": "+problem, "")
			continue
		}
		before := slices.IndexFunc(known, func(o Parameter) bool { return o.Key.Text == s.key })
		switch {
		case s.repeats || before < 0:
		case b.staysLoop(known[before], p):
			continue
		case s.once:
			b.fault(p.Key, "given-twice", quote(s.key)+" is given twice", fmt.Sprintf("write one list: %s=(…,…)", s.key))
			continue
		default:
			b.warn(p.Key, "given-twice", "remove one of them", "%s is given twice, and the last one counts", quote(s.key))
			known = slices.Delete(known, before, before+1)
		}
		known = append(known, p)
	}
	return known
}

// staysLoop refuses a rate that follows a list of rates for the same run: vdbench keeps running the loop of the list.
func (b *builder) staysLoop(before, p Parameter) bool {
	key := p.Key.Text
	stays := (key == "iorate" || key == "fwdrate") && len(before.Values) > 1 && len(p.Values) == 1
	if stays {
		b.fault(p.Key, "given-twice", fmt.Sprintf("%s was a list before, and vdbench runs every rate of that list again", key), "write the list only in the runs that need it")
	}
	return stays
}

// inherit puts parameters in place of the defaults with their key.
func (b *builder) inherit(defaults, own []Parameter) []Parameter {
	merged := slices.DeleteFunc(slices.Clone(defaults), func(p Parameter) bool {
		at := slices.IndexFunc(own, func(o Parameter) bool { return o.Key.Text == p.Key.Text })
		if at >= 0 {
			b.staysLoop(p, own[at])
		}
		return at >= 0
	})
	return append(merged, own...)
}

func isKind(key string) bool { return key != string(General) && slices.Contains(kinds, Kind(key)) }

func kindNames() (names []string) {
	for _, k := range kinds[1:] {
		names = append(names, string(k))
	}
	return names
}
