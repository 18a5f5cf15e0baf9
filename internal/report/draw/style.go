package draw

import "strings"

// Widths of terminals, in columns: the default if unknown, and the minimum for layout.
const (
	WidthDefault = 100
	WidthMin     = 20
)

// Style writes escape codes, or nothing without colour.
type Style struct{ Color bool }

func (s Style) code(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) Bold(text string) string    { return s.code("1", text) }
func (s Style) Dim(text string) string     { return s.code("2", text) }
func (s Style) Good(text string) string    { return s.code("1;32", text) }
func (s Style) Bad(text string) string     { return s.code("1;31", text) }
func (s Style) Doubt(text string) string   { return s.code("1;33", text) }
func (s Style) Accent(text string) string  { return s.code("36", text) }
func (s Style) Warning(text string) string { return s.code("1;30;43", text) }

// Rule is a heading with a line up to the width.
func (s Style) Rule(title string, width int) string {
	line := strings.Repeat("─", max(0, width-DisplayWidth(title)-1))
	return s.Bold(title) + " " + s.Dim(line)
}

// Fill pads text with blanks to a width.
func Fill(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-DisplayWidth(text)))
}
