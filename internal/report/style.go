package report

import "strings"

// style writes escape codes, or nothing where there is no colour.
type style struct{ color bool }

func (s style) code(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string    { return s.code("1", text) }
func (s style) dim(text string) string     { return s.code("2", text) }
func (s style) good(text string) string    { return s.code("1;32", text) }
func (s style) bad(text string) string     { return s.code("1;31", text) }
func (s style) doubt(text string) string   { return s.code("1;33", text) }
func (s style) accent(text string) string  { return s.code("36", text) }
func (s style) warning(text string) string { return s.code("1;30;43", text) }

// rule is a heading with a line up to the width.
func (s style) rule(title string, width int) string {
	line := strings.Repeat("─", max(0, width-displayWidth(title)-1))
	return s.bold(title) + " " + s.dim(line)
}
