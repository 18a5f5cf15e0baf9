package fiojob

import "strings"

// escapeDrives puts a backslash before the colon of every drive letter in a list of names, as fio wants it: C:\data becomes
// C\:\data. A drive is a single letter at the beginning of a name, with a colon and a slash or backslash behind it; without
// those the colon parts two names.
func escapeDrives(text string) string {
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

// drives escapes the drive letters of a list of names, where the system has them and the reading is not fio's own.
func (a *arg) drives() {
	if !a.p.options.Windows || a.p.options.Reading == Exact {
		return
	}
	escaped := escapeDrives(a.text)
	if escaped == a.text {
		return
	}
	a.warn("fio-reads-otherwise", a.written()+" names a drive; fio itself takes the colon for the end of a name", "write "+a.option.Key+"="+escaped)
	a.text = escaped
}
