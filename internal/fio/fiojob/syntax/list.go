package syntax

import (
	"strings"
	"unicode"
)

// SplitNames splits a list with colons between names; a backslash makes a colon part of a name. With emptyEnds, an empty
// name ends the list, as in fio; otherwise empty names are skipped.
func SplitNames(text string, emptyEnds bool) []string {
	if emptyEnds {
		text = strings.TrimLeft(text, ":")
	}
	var names []string
	for text != "" {
		var name strings.Builder
		i := 0
		for i < len(text) && text[i] != ':' {
			if text[i] == '\\' && i+1 < len(text) && text[i+1] == ':' {
				i++
			}
			name.WriteByte(text[i])
			i++
		}
		text = text[min(i+1, len(text)):]
		if name.Len() > 0 {
			names = append(names, name.String())
		} else if emptyEnds {
			break
		}
	}
	return names
}

func JoinFilenames(names []string, rename func(string) string) string {
	out := make([]string, len(names))
	for i, n := range names {
		if rename != nil {
			n = rename(n)
		}
		out[i] = strings.ReplaceAll(n, ":", `\:`)
	}
	list := strings.Join(out, ":")
	// Blanks at the ends of a value are not part of it, and colons there are not separators.
	if strings.TrimLeftFunc(list, unicode.IsSpace) != list {
		list = ":" + list
	}
	if strings.TrimRightFunc(list, unicode.IsSpace) != list {
		list += ":"
	}
	return list
}

// EscapeDrives puts a backslash before the colon of every drive letter in a list of names, as fio requires: C:\data becomes
// C\:\data. A drive is a single letter at the beginning of a name, followed by a colon and a slash or backslash; any other
// colon separates names.
func EscapeDrives(text string) string {
	var b strings.Builder
	start := true // of a name
	for i := 0; i < len(text); i++ {
		c := text[i]
		if start && isLetter(c) && i+2 < len(text) && text[i+1] == ':' && (text[i+2] == '\\' || text[i+2] == '/') {
			// C:\:x could be a drive and a file named ":"; fio reads an escaped colon.
			if text[i+2] != '\\' || i+3 >= len(text) || text[i+3] != ':' {
				b.WriteByte(c)
				b.WriteString(`\:`)
				i++
				start = false
				continue
			}
		}
		escaped := c == '\\' && i+1 < len(text) && text[i+1] == ':'
		b.WriteByte(c)
		if escaped {
			i++
			b.WriteByte(':')
		}
		start = c == ':'
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
