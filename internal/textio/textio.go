// Package textio makes text of unknown origin safe to show, and reads and keeps it within bounds. It does not depend on how the
// text is shown.
//
//	a name, a program's output ──▶ Line, Lines, Aligned ──▶ a terminal, a page, a message
//	a program's output ──▶ Head, Tail ──▶ the part that a message quotes
//	a stream ──▶ LineReader ──▶ lines of bounded length
package textio

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes s safe to show on one line: line feeds and tabs become spaces, control characters and invalid UTF-8 become
// U+FFFD, characters that hide or reorder text are spelled out.
func Line(s string) string { return clean(s, false) }

// Lines is Line for text of several lines: line feeds stay.
func Lines(s string) string { return clean(s, true) }

// Aligned is Line with exactly one character for each of s, and with tabs kept, so that a caret below points at the right
// character.
func Aligned(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (hides(r) || controls(r)) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Clip cuts s to runesMax characters; if it was cut, the last of them is an ellipsis.
func Clip(s string, runesMax int) string {
	if len(s) <= runesMax || utf8.RuneCountInString(s) <= runesMax {
		return s
	}
	return string([]rune(s)[:runesMax-1]) + "…"
}

// ClipMiddle bounds a text as Clip does, and leaves its begin and its end.
func ClipMiddle(s string, runesMax int) string {
	if len(s) <= runesMax || utf8.RuneCountInString(s) <= runesMax {
		return s
	}
	all, head := []rune(s), runesMax/2
	return string(all[:head]) + "…" + string(all[len(all)-(runesMax-1-head):])
}

// JoinAnd joins words: "a, b and c".
func JoinAnd(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Few joins words and counts those after the first most: "a, b and 3 more".
func Few(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		words = append(append([]string{}, words[:most]...), fmt.Sprintf("%d more", more))
	}
	return JoinAnd(words)
}

// Plural is a count with its noun: "1 host", "2 hosts".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Shell is a command that can be copied into a POSIX shell: plain words are unquoted, all others quoted.
func Shell(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

func shellWord(word string) string {
	special := func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=/.,:+%@", r)
		return !plain
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func clean(s string, lines bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteRune(utf8.RuneError)
		case r == '\n' && lines:
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case hides(r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		case controls(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// controls reports whether a terminal or a page may act on r: control characters and Unicode's line and paragraph separators.
func controls(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// hides names the characters that hide text or change its order: bidirectional marks, embeddings and isolates, zero-width
// characters, tags and the byte order mark.
func hides(r rune) bool {
	switch {
	case r >= '\u200B' && r <= '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u206F':
		return true
	}
	return r == '\uFEFF' || r == '\u061C' || r >= 0xE0000 && r <= 0xE007F
}
