package fiojob

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
	textBytesMax    = 1 << 20
	sectionsMax     = 1024
	includeDepthMax = 8
	nameBytesMax    = 255
	problemsMax     = 200 // diagnostics; more would only bury the first
)

// line is one line of text that is not blank after comments are cut.
type line struct {
	text   string // without comment, trailing blanks and carriage return
	source string // as written
	pos    diag.Position
}

// rawOption is "key=value" before its key is looked up.
type rawOption struct {
	key, value  string
	bare        bool
	literal     bool // from a command line: nothing in it is expanded
	blankBefore bool // a blank follows "=", which fio takes into the value
	pos         diag.Position
	valueColumn int
	source      string
}

type rawSection struct {
	name    string
	global  bool
	pos     diag.Position
	source  string
	options []rawOption
}

// lexer cuts text into sections. It reports what is wrong and goes on.
type lexer struct {
	p        *parser
	sections []rawSection
}

// text reads a file; open are the names of the files that are being read, this one last.
func (x *lexer) text(name, text string, open []string) {
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

func (x *lexer) section(l line, included bool) {
	name := strings.TrimPrefix(l.text, "[")
	if !strings.HasSuffix(name, "]") {
		x.p.report(diag.Diagnostic{
			Code: "bad-section", Pos: l.pos, Width: len(l.text), Source: l.source,
			Message: "section header does not end in ]", Hint: "write [name]",
		})
	}
	name = strings.TrimSuffix(name, "]")
	switch {
	case included:
		x.p.report(diag.Diagnostic{
			Code: "section-in-include", Pos: l.pos, Width: len(l.text), Source: l.source,
			Message: "an included file holds options only, no sections",
		})
		return
	case name == "" || len(name) > nameBytesMax:
		x.p.report(diag.Diagnostic{
			Code: "bad-section", Pos: l.pos, Width: len(l.text), Source: l.source,
			Message: fmt.Sprintf("section name has %d bytes, want 1 to %d", len(name), nameBytesMax),
		})
		name = fmt.Sprintf("section%d", len(x.sections)+1)
	case len(x.sections) == sectionsMax:
		x.p.report(diag.Diagnostic{
			Code: "too-many-sections", Pos: l.pos, Source: l.source,
			Message: fmt.Sprintf("more than %d sections", sectionsMax),
		})
	}
	if len(x.sections) > sectionsMax {
		return
	}
	// fio takes every name that starts with "global" as a global section.
	x.sections = append(x.sections, rawSection{
		name: name, global: strings.HasPrefix(name, "global"), pos: l.pos, source: l.source,
	})
}

func (x *lexer) option(l line) {
	raw := rawOption{pos: l.pos, source: l.source}
	key, value, found := strings.Cut(l.text, "=")
	raw.key, raw.bare = strings.TrimRight(key, " \t"), !found
	trimmed := strings.Trim(value, " \t")
	raw.blankBefore = isBlankAt(value, 0)
	raw.valueColumn = l.pos.Column + len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t"))
	raw.value = trimmed
	if raw.bare {
		raw.valueColumn = l.pos.Column
	}
	if len(x.sections) == 0 {
		x.p.report(diag.Diagnostic{
			Code: "option-outside-section", Pos: l.pos, Width: len(raw.key), Source: l.source,
			Message: fmt.Sprintf("option %q precedes any section", raw.key),
			Hint:    "put it under [global] or under the [name] of a job",
		})
		return
	}
	s := &x.sections[len(x.sections)-1]
	s.options = append(s.options, raw)
}

// include inserts the options of another file, sought relative to this one and then as named.
func (x *lexer) include(l line, open []string) {
	target := strings.TrimSpace(strings.TrimPrefix(l.text, "include"))
	refuse := func(code, message, hint string) {
		x.p.report(diag.Diagnostic{
			Code: code, Pos: l.pos, Width: len(l.text), Source: l.source, Message: message, Hint: hint,
		})
	}
	switch {
	case x.p.options.FS == nil:
		refuse("include-refused", fmt.Sprintf("include %q: other files are not read here", target),
			"copy its options into this file")
		return
	case len(open) > includeDepthMax:
		refuse("include-refused", fmt.Sprintf("include %q: more than %d levels", target, includeDepthMax), "")
		return
	case len(x.sections) == 0:
		refuse("option-outside-section", fmt.Sprintf("include %q precedes any section", target), "")
		return
	}
	for _, name := range []string{path.Join(path.Dir(l.pos.File), target), path.Clean(target)} {
		if !fs.ValidPath(name) {
			continue
		}
		if slices.Contains(open, name) {
			refuse("include-loop", fmt.Sprintf("include %q: the file is being read already", target), "")
			return
		}
		if info, err := fs.Stat(x.p.options.FS, name); err != nil || info.Size() > textBytesMax {
			continue
		}
		data, err := fs.ReadFile(x.p.options.FS, name)
		if err != nil {
			continue
		}
		if x.p.included += len(data); x.p.included > textBytesMax {
			refuse("include-refused", "included files are too large in sum", "")
			return
		}
		x.text(name, string(data), append(slices.Clone(open), name))
		return
	}
	refuse("include-missing", fmt.Sprintf("include %q: no such file below the folder that includes are read from", target), "")
}
