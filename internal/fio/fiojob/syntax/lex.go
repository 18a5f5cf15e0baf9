package syntax

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Bounds of a job file. The largest public file has 33 sections and 5 KB.
const (
	TextBytesMax    = 1 << 20
	sectionsMax     = 1024
	includeDepthMax = 8
	NameBytesMax    = 255
	problemsMax     = 200 // diagnostics; more would only hide the first
)

// line is one line of text that is not blank without its comment.
type line struct {
	text   string // without comment, trailing blanks and carriage return
	source string // as written
	pos    diag.Position
}

// RawOption is "key=value" before its key is looked up.
type RawOption struct {
	Key, Value  string
	Bare        bool
	Literal     bool // from a command line: nothing is expanded
	BlankBefore bool // a blank follows "=", which fio includes in the value
	Pos         diag.Position
	ValueColumn int
	Source      string
}

type RawSection struct {
	Name    string
	Global  bool
	Pos     diag.Position
	Source  string
	Options []RawOption
}

// Lexer splits text into sections. It reports errors and continues.
type Lexer struct {
	Problems *Problems
	Files    fs.FS // for include; nil refuses it
	included int   // bytes of included files
	sections []RawSection
}

// Read returns the sections of a file.
func (x *Lexer) Read(name, text string) []RawSection {
	x.sections = nil
	x.text(name, text, []string{name})
	return x.sections
}

// text reads a file; open are the names of the files that are being read, this one last.
func (x *Lexer) text(name, text string, open []string) {
	for number, source := range strings.Split(text, "\n") {
		source = strings.TrimSuffix(source, "\r")
		body := source
		if i := strings.IndexAny(body, ";#"); i >= 0 {
			body = body[:i]
		}
		trimmed := strings.TrimLeft(body, " \t")
		column := len(body) - len(trimmed) + 1
		trimmed = strings.TrimRight(trimmed, " \t\r")
		if trimmed == "" {
			continue
		}
		l := line{text: trimmed, source: source, pos: diag.Position{File: name, Line: number + 1, Column: column}}
		switch {
		case trimmed[0] == '[':
			x.section(l, len(open) > 1)
		case strings.HasPrefix(trimmed, "include") && isBlankAt(trimmed, len("include")):
			x.include(l, open)
		default:
			x.option(l)
		}
	}
}

func isBlankAt(s string, i int) bool { return i < len(s) && (s[i] == ' ' || s[i] == '\t') }

func (x *Lexer) section(l line, included bool) {
	name := strings.TrimPrefix(l.text, "[")
	if !strings.HasSuffix(name, "]") {
		x.report(l, "bad-section", "section header does not end in ]", "write [name]")
	}
	name = strings.TrimSuffix(name, "]")
	switch {
	case included:
		x.report(l, "section-in-include", "an included file holds options only, no sections", "")
		return
	case name == "" || len(name) > NameBytesMax:
		x.report(l, "bad-section", fmt.Sprintf("section name has %d bytes, want 1 to %d", len(name), NameBytesMax), "")
		name = fmt.Sprintf("section%d", len(x.sections)+1)
	case len(x.sections) == sectionsMax:
		x.Problems.Report(diag.Diagnostic{
			Code: "too-many-sections", Pos: l.pos, Source: l.source,
			Message: fmt.Sprintf("more than %d sections", sectionsMax),
		})
	}
	if len(x.sections) > sectionsMax {
		return
	}
	// fio takes every name that starts with "global" as a global section.
	x.sections = append(x.sections, RawSection{
		Name: name, Global: strings.HasPrefix(name, "global"), Pos: l.pos, Source: l.source,
	})
}

func (x *Lexer) option(l line) {
	raw := RawOption{Pos: l.pos, Source: l.source}
	key, value, found := strings.Cut(l.text, "=")
	raw.Key, raw.Bare = strings.TrimRight(key, " \t"), !found
	trimmed := strings.Trim(value, " \t")
	raw.BlankBefore = isBlankAt(value, 0)
	raw.ValueColumn = l.pos.Column + len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t"))
	raw.Value = trimmed
	if raw.Bare {
		raw.ValueColumn = l.pos.Column
	}
	if len(x.sections) == 0 {
		x.Problems.Report(diag.Diagnostic{
			Code: "option-outside-section", Pos: l.pos, Width: len(raw.Key), Source: l.source,
			Message: fmt.Sprintf("option %q precedes any section", raw.Key),
			Hint:    "put it under [global] or under the [name] of a job",
		})
		return
	}
	s := &x.sections[len(x.sections)-1]
	s.Options = append(s.Options, raw)
}

func (x *Lexer) report(l line, code, message, hint string) {
	x.Problems.Report(diag.Diagnostic{Code: code, Pos: l.pos, Width: len(l.text), Source: l.source, Message: message, Hint: hint})
}

// include inserts the options of another file, searched relative to this one and then as named.
func (x *Lexer) include(l line, open []string) {
	target := strings.TrimSpace(strings.TrimPrefix(l.text, "include"))
	switch {
	case x.Files == nil:
		x.report(l, "include-refused", fmt.Sprintf("include %q: other files are not read here", target),
			"copy its options into this file")
		return
	case len(open) > includeDepthMax:
		x.report(l, "include-refused", fmt.Sprintf("include %q: more than %d levels", target, includeDepthMax), "")
		return
	case len(x.sections) == 0:
		x.report(l, "option-outside-section", fmt.Sprintf("include %q precedes any section", target), "")
		return
	}
	for _, name := range []string{path.Join(path.Dir(l.pos.File), target), path.Clean(target)} {
		if !fs.ValidPath(name) {
			continue
		}
		if slices.Contains(open, name) {
			x.report(l, "include-loop", fmt.Sprintf("include %q: the file is being read already", target), "")
			return
		}
		if info, err := fs.Stat(x.Files, name); err != nil || !info.Mode().IsRegular() || info.Size() > TextBytesMax { // a pipe would block
			continue
		}
		data, err := fs.ReadFile(x.Files, name)
		if err != nil {
			continue
		}
		if x.included += len(data); x.included > TextBytesMax {
			x.report(l, "include-refused", "included files are too large in sum", "")
			return
		}
		x.text(name, string(data), append(slices.Clone(open), name))
		return
	}
	x.report(l, "include-missing", fmt.Sprintf("include %q: no such file below the folder that includes are read from", target), "")
}

// CommandLine is the file name in positions of options from a command line. Their line is the number of the word.
const CommandLine = "command line"

// Words turns options of a command line into sections: the first is global, then one for each --name. takesValue reports
// whether an option without an equals sign takes the next word as its value.
func (x *Lexer) Words(words []string, takesValue func(key string) bool) []RawSection {
	if len(words) == 0 {
		return nil
	}
	sections := []RawSection{{Name: "global", Global: true, Pos: diag.Position{File: CommandLine, Line: 1}}}
	for i := 0; i < len(words); i++ {
		raw := wordOption(words[i], i+1)
		if raw.Bare && takesValue(raw.Key) && i+1 < len(words) {
			i++
			raw.Bare, raw.Value, raw.Pos.Line, raw.Source = false, words[i], i+1, words[i]
			raw.ValueColumn = 1
		}
		if raw.Key == "name" && !raw.Bare {
			sections = append(sections, RawSection{
				Name: raw.Value, Global: raw.Value == "global", Pos: raw.Pos, Source: raw.Source,
			})
			if len(sections) > sectionsMax {
				x.Problems.Report(diag.Diagnostic{
					Code: "too-many-sections", Pos: raw.Pos, Source: raw.Source, Message: fmt.Sprintf("more than %d sections", sectionsMax),
				})
				return sections
			}
			continue
		}
		s := &sections[len(sections)-1]
		s.Options = append(s.Options, raw)
	}
	return sections
}

// wordOption reads "--key=value", "-key=value" or "--key". The shell has already expanded variables.
func wordOption(word string, number int) RawOption {
	body := strings.TrimLeft(word, "-")
	dashes := len(word) - len(body)
	key, value, found := strings.Cut(body, "=")
	raw := RawOption{
		Key: key, Value: strings.Trim(value, " \t"), Bare: !found, Literal: true, Source: word, BlankBefore: isBlankAt(value, 0),
		Pos:         diag.Position{File: CommandLine, Line: number, Column: dashes + 1},
		ValueColumn: dashes + len(key) + 2,
	}
	if raw.Bare {
		raw.ValueColumn = raw.Pos.Column
	}
	return raw
}
