package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/textio"
)

// printJSON writes v indented, followed by a line feed.
func (p *Process) printJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// table collects rows and prints them in columns. Cells are foreign text as often as not, so they are cleaned.
type table struct {
	head []string
	rows [][]string
	// width is how many columns there are; the last cell of a row, which is running text, is wrapped to it. 0 wraps nothing.
	width int
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the heading and the rows, columns two blanks apart; the last column is not padded.
func (t *table) print(w io.Writer) error {
	rows := t.rows
	if len(t.head) > 0 {
		rows = append([][]string{t.head}, rows...)
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

// hanging wraps a last cell that begins at a column; further lines begin there too.
func (t *table) hanging(cell string, column int) string {
	const textMin = 20 // in less, text is a column of single words
	room := t.width - column
	if t.width == 0 || room < textMin {
		return cell
	}
	return strings.Join(wrap(cell, room), "\n"+strings.Repeat(" ", column))
}
