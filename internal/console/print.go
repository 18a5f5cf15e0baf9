package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"
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

// Table collects rows and prints them in columns. Cells often have text of unknown origin, so they are cleaned.
type Table struct {
	Head []string
	rows [][]string
	// Width is the number of columns to which cells are wrapped. 0 disables wrapping.
	Width int
}

func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the heading and the rows in text columns.
func (t *Table) Print(w io.Writer) error {
	out := draw.Table{Heads: t.Head, Left: len(t.Head)}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = textio.Line(cell)
		}
		out.Add(cells...)
		out.Left = max(out.Left, len(row))
	}
	lines := out.Lines(cmp.Or(t.Width, math.MaxInt), draw.Style{})
	_, err := io.WriteString(w, strings.Join(append(lines, ""), "\n"))
	return err
}

// Section writes the table after an empty line.
func (t *Table) Section(b *strings.Builder) {
	b.WriteString("\n")
	_ = t.Print(b) // writes to a strings.Builder do not fail
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// TextWidthMax is the maximum width of running text, in characters.
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

// Paragraphs wraps running text; an empty line separates paragraphs.
func Paragraphs(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Wrap(line, width)...)
	}
	return strings.Join(lines, "\n")
}

// Number is n, or a dash for none.
func Number(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

// Bytes is a size, or a dash for none.
func Bytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return unit.FormatBytes(n)
}
