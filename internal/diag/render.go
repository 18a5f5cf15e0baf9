package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/textio"
)

// Render prints every diagnostic with its place, its source line and a caret, ordered by position. Duplicates, because a
// loop repeats its line, are printed once:
//
//	test.yml:12:7: error: unknown key "vcpu" [unknown-key]
//	   12 |       vcpu: 2
//	      |       ^^^^
//	      = did you mean "vcpus"?
func Render(w io.Writer, list List) error {
	var b strings.Builder
	times := map[Diagnostic]int{}
	for _, d := range list {
		times[d]++
	}
	for _, d := range list.Sorted() {
		n := times[d]
		if n == 0 {
			continue
		}
		times[d] = 0
		if n > 1 {
			d.Message += fmt.Sprintf(" (%d times)", n)
		}
		renderOne(&b, d)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func renderOne(b *strings.Builder, d Diagnostic) {
	if at := d.Pos.String(); at != "" {
		fmt.Fprintf(b, "%s: ", textio.Aligned(at))
	}
	fmt.Fprintf(b, "%s: %s [%s]\n", d.Severity, textio.Aligned(d.Message), d.Code)
	if d.Source != "" {
		text, before, width := window(d.Source, d.Pos.Column-1, max(1, d.Width))
		fmt.Fprintf(b, "%5d | %s\n", d.Pos.Line, textio.Aligned(text))
		if d.Pos.Column > 0 {
			fmt.Fprintf(b, "      | %s%s\n", indentUnder(text, before), strings.Repeat("^", width))
		}
	}
	if d.Rendered != "" && d.Rendered != d.Source {
		text, _, _ := window(strings.TrimSpace(d.Rendered), 0, 1)
		fmt.Fprintf(b, "      = rendered: %s\n", textio.Aligned(text))
	}
	if d.Hint != "" {
		fmt.Fprintf(b, "      = %s\n", textio.Aligned(d.Hint))
	}
}

// Bounds of the shown part of one source line, in bytes: windowWidth in total, windowBefore of it before the caret.
const (
	windowWidth  = 160
	windowBefore = 60
)

// window cuts the section around byte at out of a long line, and returns the index of that byte in the section and the remaining
// width.
func window(line string, at, width int) (string, int, int) {
	at = max(at, 0)
	if len(line) <= windowWidth {
		return line, at, max(1, min(width, windowWidth-at))
	}
	start := max(0, min(at, len(line))-windowBefore)
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	end := min(len(line), start+windowWidth)
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end--
	}
	text := line[start:end]
	width = max(1, min(width, end-at))
	if start > 0 {
		text = ellipsis + text
		at += len(ellipsis) - start
	}
	if end < len(line) {
		text += ellipsis
	}
	return text, at, width
}

const ellipsis = "…"

// indentUnder returns blanks as wide as the first n bytes of line; tabs stay tabs, so that the caret is in the right column.
func indentUnder(line string, n int) string {
	var b strings.Builder
	for i, r := range line {
		if i >= n {
			break
		}
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
