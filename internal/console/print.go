package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// PrintJSON writes v indented, followed by a line feed.
func (p *Process) PrintJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Table collects rows and prints them in columns. Cells are foreign text as often as not, so they are cleaned.
type Table struct {
	Head []string
	rows [][]string
	// Width is how many columns there are; the last cell of a row, which is running text, is wrapped to it. 0 wraps nothing.
	Width int
}

func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the heading and the rows, columns two blanks apart; the last column is not padded.
func (t *Table) Print(w io.Writer) error {
	rows := t.rows
	if len(t.Head) > 0 {
		rows = append([][]string{t.Head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(textio.Line(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = textio.Line(cell)
			if i+1 == len(widths) {
				cell = t.hanging(cell, utf8.RuneCountInString(line.String()))
			}
			line.WriteString(cell)
			if i+1 < len(row) {
				line.WriteString(strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(cell)))
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(line.String(), " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Section writes the table below an empty line.
func (t *Table) Section(b *strings.Builder) {
	b.WriteString("\n")
	_ = t.Print(b) // a strings.Builder takes everything
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// hanging wraps a last cell that begins at a column; further lines begin there too.
func (t *Table) hanging(cell string, column int) string {
	const textMin = 20 // in less, text is a column of single words
	room := t.Width - column
	if t.Width == 0 || room < textMin {
		return cell
	}
	return strings.Join(Wrap(cell, room), "\n"+strings.Repeat(" ", column))
}

// TextWidthMax is how wide running text is printed at most, in characters.
const TextWidthMax = 100

// Wrap breaks one line at blanks; further lines are indented like the first.
func Wrap(line string, width int) []string {
	indent := ""
	if strings.HasPrefix(strings.TrimLeft(line, " "), "•") {
		indent = "    "
	}
	var out []string
	current := ""
	for _, word := range strings.Fields(line) {
		if current != "" && len([]rune(current))+1+len([]rune(word)) > width {
			out = append(out, current)
			current = indent + word
			continue
		}
		switch {
		case current != "":
			current += " " + word
		case indent != "":
			current = "  " + word
		default:
			current = word
		}
	}
	return append(out, current)
}

// Paragraphs wraps running text; an empty line parts paragraphs.
func Paragraphs(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Wrap(line, width)...)
	}
	return strings.Join(lines, "\n")
}

// Number is n, a dash for none.
func Number(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

// Bytes is a size, a dash for none.
func Bytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return unit.FormatBytes(n)
}
