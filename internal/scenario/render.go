package scenario

import (
	"fmt"
	"sort"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/jinja"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// renderedText is a rendered template with the origin of its bytes.
type renderedText struct {
	out         *jinja.Output
	lineStarts  []int // of the rendered text
	sourceLines lineTable
}

// render fills in the variables. If there are faults, it returns no text.
func render(source string, values map[string]any) (*renderedText, []yamltree.Fault) {
	table := newLineTable(source)
	out, problems := jinja.Render(source, values, jinja.Limits{OutputBytes: yamltree.RenderedBytesMax})
	var faults []yamltree.Fault
	for _, problem := range problems {
		f := yamltree.Fault{Code: problem.Code, Message: problem.Message, Hint: problem.Hint, Width: problem.Width}
		f.Line, f.Column = table.position(problem.Offset)
		if f.Hint == "" && problem.Subject != "" {
			f.Hint = suggestName(problem)
		}
		faults = append(faults, f)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return &renderedText{out: out, lineStarts: newLineTable(out.Text), sourceLines: table}, nil
}

func suggestName(problem jinja.Fault) string {
	if near := diag.Nearest(problem.Subject, problem.Choices); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if problem.Code == "undefined-name" {
		return "define it in vars"
	}
	return suggest(problem.Subject, problem.Choices)
}

// Place maps a position of the rendered text to the template.
func (r *renderedText) Place(line, column int) (int, int, int) {
	if line < 1 || line > len(r.lineStarts) {
		return 0, 0, 0
	}
	at := min(r.lineStarts[line-1]+max(column, 1)-1, max(len(r.out.Text)-1, 0))
	from, width := r.out.Origin(at)
	srcLine, srcColumn := r.sourceLines.position(from)
	return srcLine, srcColumn, width
}

// lineTable holds the offset of every line's first byte.
type lineTable []int

func newLineTable(text string) lineTable {
	table := lineTable{0}
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return table
		}
		at += next + 1
		table = append(table, at)
	}
}

// position returns the line and the column, both from 1, of a byte.
func (t lineTable) position(offset int) (line, column int) {
	i := sort.SearchInts(t, offset+1) - 1
	return i + 1, offset - t[i] + 1
}
