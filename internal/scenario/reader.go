package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// reader reads values of one document. It reports all problems, with their place in the user's text, and continues.
type reader struct {
	file     string
	source   []string // lines as written
	rendered []string // lines as rendered
	problems diag.List
	reported map[placeAndCode]*repeated // so that a loop reports a problem once
}

// placeAndCode identifies a problem that each pass of a loop repeats.
type placeAndCode struct {
	line, column int
	code         string
}

type repeated struct{ index, renderedLine, passes int }

// report adds an error at n.
func (r *reader) report(n yamltree.Node, code, hint, format string, args ...any) {
	r.add(n, diag.Diagnostic{Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// warn adds a warning at n.
func (r *reader) warn(n yamltree.Node, code, hint, format string, args ...any) {
	r.add(n, diag.Diagnostic{Severity: diag.SeverityWarning, Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) add(n yamltree.Node, d diag.Diagnostic) {
	key := placeAndCode{n.Line, n.Column, d.Code}
	if first := r.reported[key]; first != nil && first.renderedLine != n.RenderedLine && n.Line > 0 {
		first.passes++
		return
	}
	if r.reported == nil {
		r.reported = map[placeAndCode]*repeated{}
	}
	r.reported[key] = &repeated{index: len(r.problems), renderedLine: n.RenderedLine}
	shown := r.diagnostic(n.Line, n.Column, n.Width, n.RenderedLine)
	d.Pos, d.Width, d.Source, d.Rendered = shown.Pos, shown.Width, shown.Source, shown.Rendered
	r.problems.Add(d)
}

// collected returns all diagnostics in the order of the text.
func (r *reader) collected() diag.List {
	for _, again := range r.reported {
		if again.passes == 1 {
			r.problems[again.index].Message += " (and in another pass of the loop)"
		} else if again.passes > 1 {
			r.problems[again.index].Message += fmt.Sprintf(" (and in %d more passes of the loop)", again.passes)
		}
	}
	return r.problems.Sorted()
}

// diagnostic starts a diagnostic at a place of the user's text.
func (r *reader) diagnostic(line, column, width, renderedLine int) diag.Diagnostic {
	d := diag.Diagnostic{Pos: diag.Position{File: r.file, Line: line, Column: column}, Width: width}
	if line >= 1 && line <= len(r.source) {
		d.Source = r.source[line-1]
		d.Width = min(width, max(1, len(d.Source)-column+1))
	}
	if renderedLine >= 1 && renderedLine <= len(r.rendered) && d.Source != "" {
		if text := r.rendered[renderedLine-1]; strings.TrimSpace(text) != strings.TrimSpace(d.Source) {
			d.Rendered = text
		}
	}
	return d
}

func (r *reader) pos(n yamltree.Node) diag.Position {
	return diag.Position{File: r.file, Line: n.Line, Column: n.Column}
}

// checkName reports a name that cannot be shown or used in a file name.
func (r *reader) checkName(n yamltree.Node, what string, longest int) {
	switch {
	case n.Kind != yamltree.Scalar || strings.TrimSpace(n.Text) == "":
		r.report(n, "bad-name", "", "%s has no name", what)
	case utf8.RuneCountInString(n.Text) > longest:
		r.report(n, "bad-name", "", "the name of %s has %d characters and at most %d are allowed",
			what, utf8.RuneCountInString(n.Text), longest)
	case strings.ContainsFunc(n.Text, func(r rune) bool { return !unicode.IsPrint(r) }):
		r.report(n, "bad-name", "", "the name of %s has characters that cannot be printed", what)
	}
}

func (r *reader) faults(faults []yamltree.Fault) {
	for _, f := range faults {
		d := r.diagnostic(f.Line, f.Column, f.Width, f.RenderedLine)
		d.Code, d.Message, d.Hint = f.Code, f.Message, f.Hint
		r.problems.Add(d)
	}
}

// tree parses YAML and reports why it cannot be a scenario.
func (r *reader) tree(text string, place yamltree.Placer) *yamltree.Node {
	b := yamltree.Builder{Lines: splitLines(text), Place: place}
	if f := yamltree.Survey(b.Lines); f != nil {
		f.Line, f.Column, f.Width = place.Place(f.RenderedLine, f.Column)
		r.faults([]yamltree.Fault{*f})
		return nil
	}
	var y yaml.Node
	if err := yaml.Load([]byte(text), &y); err != nil {
		r.faults([]yamltree.Fault{b.FaultOf(err)})
		return nil
	}
	if y.Kind != yaml.DocumentNode || len(y.Content) == 0 {
		r.faults([]yamltree.Fault{{Code: "empty", Message: "the document is empty", Line: 1, Column: 1}})
		return nil
	}
	root := b.Build(y.Content[0])
	r.faults(b.Faults)
	if len(b.Faults) > 0 {
		return nil
	}
	return &root
}

// rawSection cuts a top-level section out of the raw text, which is not valid YAML as a whole, and parses it. The section
// ends at the next line that begins in the first column and is not a comment.
func (r *reader) rawSection(source, name string) *yamltree.Node {
	head := regexp.MustCompile(`(?m)^` + name + `[ \t]*:`)
	loc := head.FindStringIndex(source)
	if loc == nil {
		return nil
	}
	first := strings.Count(source[:loc[0]], "\n")
	end := first + 1
	for end < len(r.source) && (r.source[end] == "" || strings.ContainsRune(" \t#", rune(r.source[end][0]))) {
		end++
	}
	section := strings.Join(r.source[first:end], "\n") + "\n"
	if at := strings.Index(section, "{{"); at >= 0 {
		line := first + strings.Count(section[:at], "\n")
		column := strings.Index(r.source[line], "{{") + 1
		r.faults([]yamltree.Fault{{Code: "template-in-vars", Line: line + 1, Column: column, Width: 2,
			Message: fmt.Sprintf("the section %s is read before the template is rendered and cannot have {{ … }}", name)}})
		return nil
	}
	root := r.tree(section, offset(first))
	if root == nil || root.Kind != yamltree.Mapping || len(root.Items) < 2 || yamltree.IsNull(root.Items[1]) {
		return nil
	}
	return &root.Items[1]
}

// offset places a text that was cut out of the user's text as whole lines.
type offset int

func (o offset) Place(line, column int) (int, int, int) { return int(o) + line, column, 0 }

// splitLines cuts text into lines without their ends.
func splitLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}
