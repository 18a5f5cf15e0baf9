package draw

import (
	"strings"
	"unicode"
)

// Table is a table of text. Columns are as wide as their widest cell; if they do not fit, every row is stacked as "heading: cell"
// lines, so that no text is cut.
type Table struct {
	Heads []string
	Left  int // the first columns are text, left-aligned; the others are numbers, right-aligned
	Rows  [][]string
	// Grouped: the first column names a group of rows and may become a heading if the table is too wide.
	Grouped bool
}

const (
	ColumnGap     = 2
	textCellMin   = 12 // columns of text are wrapped down to this width before rows are stacked
	stackedIndent = "  "
	groupIndent   = "  "
)

func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Lines lays the table out for width columns. The first line is the heading, unless rows are stacked.
func (t *Table) Lines(width int, style Style) []string {
	widths := t.Widths()
	excess := Sum(widths) + ColumnGap*(len(widths)-1) - width
	if excess > 0 && t.Grouped {
		return t.grouped(width, style)
	}
	for excess > 0 {
		// The widest column of text is narrowed first.
		widest := -1
		for i := range t.Left {
			if widths[i] > textCellMin && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return t.stacked(width)
		}
		widths[widest]--
		excess--
	}
	out := []string{}
	if len(t.Heads) > 0 {
		for _, line := range t.row(t.Heads, widths) {
			out = append(out, style.Dim(line))
		}
	}
	for _, r := range t.Rows {
		out = append(out, t.row(r, widths)...)
	}
	return out
}

// Fits reports whether the table fits without wrapping a cell.
func (t *Table) Fits(width int) bool {
	widths := t.Widths()
	return Sum(widths)+ColumnGap*(len(widths)-1) <= width
}

func (t *Table) Widths() []int {
	var widths []int
	for _, r := range append([][]string{t.Heads}, t.Rows...) {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], DisplayWidth(c))
		}
	}
	return widths
}

// grouped prints a first cell that several rows share once as a heading, and the other cells below.
func (t *Table) grouped(width int, style Style) []string {
	rest := Table{Heads: t.Heads[1:], Left: t.Left - 1}
	for _, r := range t.Rows {
		rest.Add(r[1:]...)
	}
	if !rest.Fits(width - len(groupIndent)) {
		return (&Table{Heads: t.Heads, Left: t.Left, Rows: t.Rows}).Lines(width, style)
	}
	lines := rest.Lines(width-len(groupIndent), style)
	out := []string{groupIndent + lines[0]}
	last := ""
	for i, r := range t.Rows {
		if r[0] != "" && (i == 0 || r[0] != last) {
			out = append(out, Wrap(r[0], width)...)
			last = r[0]
		}
		out = append(out, groupIndent+lines[i+1])
	}
	return out
}

// row lays one row out over as many lines as its tallest cell needs.
func (t *Table) row(cells []string, widths []int) []string {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		wrapped[i] = Wrap(c, widths[i])
		height = max(height, len(wrapped[i]))
	}
	out := make([]string, 0, height)
	for y := range height {
		var b strings.Builder
		for i := range cells {
			text := ""
			if y < len(wrapped[i]) {
				text = wrapped[i][y]
			}
			if i > 0 {
				b.WriteString(strings.Repeat(" ", ColumnGap))
			}
			pad := strings.Repeat(" ", max(0, widths[i]-DisplayWidth(text)))
			if i < t.Left {
				b.WriteString(text + pad)
			} else {
				b.WriteString(pad + text)
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// stacked prints the text cells of a row as a heading and the numbers below.
func (t *Table) stacked(width int) []string {
	var out []string
	for _, r := range t.Rows {
		var names []string
		for _, c := range r[:min(t.Left, len(r))] {
			if c != "" {
				names = append(names, c)
			}
		}
		out = append(out, Wrap(strings.Join(names, " · "), width)...)
		line := ""
		for i := t.Left; i < len(r); i++ {
			if r[i] == "" {
				continue
			}
			item := t.Heads[i] + " " + r[i]
			if line != "" && DisplayWidth(stackedIndent+line+"   "+item) > width {
				out = append(out, stackedIndent+line)
				line = ""
			}
			if line != "" {
				line += "   "
			}
			line += item
		}
		if line != "" {
			out = append(out, stackedIndent+line)
		}
	}
	return out
}

// Wrap breaks text at blanks, and within words longer than width.
func Wrap(text string, width int) []string {
	if DisplayWidth(text) <= width || width < 1 {
		return []string{text}
	}
	var out []string
	line, lineWidth := "", 0
	flush := func() {
		out = append(out, line)
		line, lineWidth = "", 0
	}
	for word := range strings.FieldsSeq(text) {
		w := DisplayWidth(word)
		if lineWidth > 0 && lineWidth+1+w > width {
			flush()
		}
		if lineWidth > 0 {
			line += " "
			lineWidth++
		}
		for _, r := range word {
			rw := runeWidth(r)
			if lineWidth+rw > width && lineWidth > 0 {
				flush()
			}
			line += string(r)
			lineWidth += rw
		}
	}
	if lineWidth > 0 {
		flush()
	}
	return out
}

// Hang wraps a line that begins with a time; continuation lines are indented below its text.
func Hang(line string, width int) []string {
	at, text, found := strings.Cut(line, "  ")
	if !found || DisplayWidth(line) <= width {
		return Wrap(line, width)
	}
	indent := DisplayWidth(at) + 2
	parts := Wrap(text, max(10, width-indent))
	for i := range parts {
		if i == 0 {
			parts[i] = at + "  " + parts[i]
			continue
		}
		parts[i] = strings.Repeat(" ", indent) + parts[i]
	}
	return parts
}

// DisplayWidth is the number of terminal columns of s, which must not contain escape codes.
func DisplayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth handles combining marks and the wide blocks of East Asian text and emoji.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115F, r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7A3,
		r >= 0xF900 && r <= 0xFAFF, r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFF60,
		r >= 0xFFE0 && r <= 0xFFE6, r >= 0x1F300 && r <= 0x1F64F, r >= 0x1F900 && r <= 0x1F9FF,
		r >= 0x20000 && r <= 0x3FFFD:
		return 2
	}
	return 1
}

func Sum(list []int) int {
	n := 0
	for _, v := range list {
		n += v
	}
	return n
}
