package yamltree

import "strings"

// openQuote finds a probably unclosed quote in invalid YAML. Such a quote ends at the next one of its kind, lines below,
// followed by text that cannot follow a closing quote; the parser complains there. Line and column, from 1, are where it
// opens.
func openQuote(lines []string) (line, column int, found bool) {
	textIndent := -1
	for i := 0; i < len(lines); i++ {
		body := strings.TrimLeft(lines[i], " ")
		indent := len(lines[i]) - len(body)
		switch {
		case body == "" || body[0] == '#' || textIndent >= 0 && indent > textIndent:
			continue
		case opensBlockText(body):
			textIndent = indent
			continue
		}
		textIndent = -1
		for at := nextQuote(lines[i], 0); at >= 0; {
			endLine, end := closingQuote(lines, i, at)
			if endLine < 0 {
				return i + 1, at + 1, true
			}
			rest := strings.TrimSpace(lines[endLine][end+1:])
			if endLine > i && rest != "" && strings.IndexByte(":,]}#", rest[0]) < 0 {
				return i + 1, at + 1, true
			}
			i, at = endLine, nextQuote(lines[endLine], end+1)
		}
	}
	return 0, 0, false
}

// nextQuote returns where in a line, from an offset on, a quoted value begins, or -1.
func nextQuote(line string, from int) int {
	for i := from; i < len(line); i++ {
		if line[i] != '"' && line[i] != '\'' {
			continue
		}
		before := strings.TrimRight(line[:i], " ")
		if before == "" || strings.IndexByte(",[{", before[len(before)-1]) >= 0 ||
			len(before) < i && strings.IndexByte(":-?", before[len(before)-1]) >= 0 {
			return i
		}
	}
	return -1
}

// closingQuote returns the line and offset of the quote that ends the one at an offset of a line, -1 if there is none.
func closingQuote(lines []string, line, at int) (int, int) {
	quote := lines[line][at]
	for from := at + 1; line < len(lines); line, from = line+1, 0 {
		for i := from; i < len(lines[line]); i++ {
			switch c := lines[line][i]; {
			case c == '\\' && quote == '"':
				i++
			case c == quote && quote == '\'' && i+1 < len(lines[line]) && lines[line][i+1] == '\'':
				i++
			case c == quote:
				return line, i
			}
		}
	}
	return -1, -1
}
