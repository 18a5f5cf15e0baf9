package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameRunesMax bounds a name that comes from a scenario or a target.
const nameRunesMax = 200

// Clean makes a text of unknown origin safe to show on one line of a terminal or a page: control characters, escape
// codes and the invisible characters that reorder text become visible, line feeds become spaces.
func Clean(s string) string { return clip(cleanRunes(s, false), nameRunesMax) }

// cleanText is Clean for longer text: nothing is cut off and line feeds stay.
func cleanText(s string) string { return cleanRunes(s, true) }

func cleanRunes(s string, lines bool) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteRune('\uFFFD')
		case r == '\n' && lines:
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case reorders(r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// reorders names the characters that hide text or change its order: bidirectional marks, embeddings and isolates,
// zero-width characters and the byte order mark.
func reorders(r rune) bool {
	switch {
	case r >= '\u200B' && r <= '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u206F':
		return true
	}
	return r == '\uFEFF' || r == '\u061C' || r >= 0xE0000 && r <= 0xE007F
}

func clip(s string, runesMax int) string {
	if len(s) <= runesMax || utf8.RuneCountInString(s) <= runesMax {
		return s
	}
	return string([]rune(s)[:runesMax-1]) + "…"
}

// cleanRaw returns raw when it is valid JSON, else null.
func cleanRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return raw
}
