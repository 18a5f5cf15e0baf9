package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// fields are the keys of one mapping.
type fields struct {
	*reader
	what  string        // "VM group \"OLTP\"", for messages
	at    yamltree.Node // where a missing key is reported
	names []string
	key   map[string]yamltree.Node
	value map[string]yamltree.Node
	meant []string // known keys that unknown ones are probably meant to be
}

// mapping reads a mapping whose keys are known beforehand; it reports unknown and duplicate keys.
func (r *reader) mapping(n, at yamltree.Node, what string, known []string) fields {
	f := fields{reader: r, what: what, at: at, key: map[string]yamltree.Node{}, value: map[string]yamltree.Node{}}
	if n.Kind != yamltree.Mapping {
		if !yamltree.IsNull(n) {
			r.report(n, "wrong-shape", "", "%s is %s where a mapping of keys is wanted", what, n.Kind)
		}
		return f
	}
	for i := 0; i+1 < len(n.Items); i += 2 {
		key, value := n.Items[i], n.Items[i+1]
		if key.Kind != yamltree.Scalar {
			r.report(key, "wrong-shape", "", "a key of %s is %s where a name is wanted", what, key.Kind)
			continue
		}
		if known != nil && !slices.Contains(known, key.Text) {
			f.meant = append(f.meant, r.unknownKey(key, what, known))
			continue
		}
		if first, twice := f.key[key.Text]; twice {
			r.report(key, "duplicate-key", "", "%s has the key %q twice; the first is in line %d", what,
				key.Text, first.Line)
			continue
		}
		f.names = append(f.names, key.Text)
		f.key[key.Text], f.value[key.Text] = key, value
	}
	return f
}

// unknownKey reports a key and returns the known key that is probably meant, or "".
func (r *reader) unknownKey(key yamltree.Node, what string, known []string) string {
	hint, near := "", diag.Nearest(key.Text, known)
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(known) <= 12 {
		hint = "known here: " + strings.Join(known, ", ")
	}
	r.report(key, "unknown-key", hint, "%s has no key %q", what, shorten(key.Text))
	return near
}

// shorten limits the length of quoted input in a message.
func shorten(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return string([]rune(s)[:40]) + "…"
	}
	return s
}

// require reports every name that is missing or has no value.
func (f fields) require(names ...string) {
	for _, name := range names {
		value, ok := f.value[name]
		switch {
		case slices.Contains(f.meant, name): // already reported as a misspelling
		case !ok:
			f.report(f.at, "missing-key", "", "%s has no %q", f.what, name)
		case yamltree.IsNull(value):
			f.report(f.key[name], "missing-value", "", "%s: %q has no value", f.what, name)
		}
	}
}

// get returns the value of name; a key without a value counts as absent.
func (f fields) get(name string) (yamltree.Node, bool) {
	n, ok := f.value[name]
	return n, ok && !yamltree.IsNull(n)
}

// text reads a value as text; numbers and booleans are returned as written.
func (f fields) text(name string) string {
	n, ok := f.get(name)
	if !ok {
		return ""
	}
	if n.Kind != yamltree.Scalar {
		f.report(n, "wrong-type", "", "%s: %s is %s where text is wanted", f.what, name, n.Kind)
		return ""
	}
	return strings.TrimSpace(n.Text)
}

// integer reads a whole number between low and high; absent or wrong gives fallback.
func (f fields) integer(name string, low, high, fallback int64) int64 {
	n, ok := f.get(name)
	if !ok {
		return fallback
	}
	i, ok := yamltree.AsInt(n)
	if !ok {
		f.report(n, "wrong-type", "", "%s: %s is %s where a whole number is wanted", f.what, name, quoteNode(n))
		return fallback
	}
	if i < low || i > high {
		f.report(n, "out-of-range", "", "%s: %s is %d and must be from %d to %d", f.what, name, i, low, high)
		return fallback
	}
	return i
}

// number reads a finite number.
func (f fields) number(name string) (float64, bool) {
	n, ok := f.get(name)
	if !ok {
		return 0, false
	}
	v, ok := yamltree.AsNumber(n)
	if !ok {
		f.report(n, "wrong-type", "", "%s: %s is %s where a number is wanted", f.what, name, quoteNode(n))
	}
	return v, ok
}

// secondsMax bounds every duration in a scenario: a year.
const secondsMax = 366 * 24 * 3600

// duration reads seconds, or text with a unit such as "30s" or "5 m".
func (f fields) duration(name string) time.Duration {
	n, ok := f.get(name)
	if !ok {
		return 0
	}
	d, ok := parseDuration(n)
	if !ok {
		f.report(n, "wrong-type", `write seconds, or a number with s, m or h: "30s"`,
			"%s: %s is %s where a time is wanted", f.what, name, quoteNode(n))
		return 0
	}
	if d < 0 || d > secondsMax*time.Second {
		f.report(n, "out-of-range", "", "%s: %s is %s and must be from 0 to %d seconds", f.what, name,
			quoteNode(n), secondsMax)
		return 0
	}
	return d
}

func parseDuration(n yamltree.Node) (time.Duration, bool) {
	if n.Kind != yamltree.Scalar {
		return 0, false
	}
	text, scale := strings.TrimSpace(n.Text), time.Second
	for _, u := range durationUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, scale = strings.TrimSpace(rest), u.scale
			break
		}
	}
	v, ok := yamltree.AsNumber(yamltree.Node{Text: text})
	if !ok || v < -secondsMax || v > secondsMax {
		return 0, ok
	}
	return time.Duration(v * float64(scale)), true
}

// durationUnits are tried in this order, so that "ms" is not taken for "s".
var durationUnits = []struct {
	suffix string
	scale  time.Duration
}{
	{"ms", time.Millisecond}, {"µs", time.Microsecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
	{"min", time.Minute}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// texts reads a list of texts.
func (f fields) texts(name string) []string {
	var out []string
	for _, n := range f.list(name) {
		if n.Kind != yamltree.Scalar || yamltree.IsNull(n) {
			f.report(n, "wrong-type", "", "%s: an entry of %s is %s where text is wanted", f.what, name, quoteNode(n))
			continue
		}
		out = append(out, n.Text)
	}
	return out
}

// list returns the entries of a list.
func (f fields) list(name string) []yamltree.Node {
	n, ok := f.get(name)
	if !ok {
		return nil
	}
	if n.Kind != yamltree.Sequence {
		f.report(n, "wrong-type", `begin each entry with "- "`, "%s: %s is %s where a list is wanted", f.what, name, quoteNode(n))
		return nil
	}
	return n.Items
}

// oneOf reads a text that must be one of choices.
func (f fields) oneOf(name string, choices []string) string {
	text := f.text(name)
	if text == "" || slices.Contains(choices, text) {
		return text
	}
	n, _ := f.get(name)
	f.report(n, "unknown-value", suggest(text, choices), "%s: %s cannot be %q", f.what, name, text)
	return ""
}

// reference reads a text that must be one of the known names of a kind.
func (f fields) reference(name, code, kind string, known []string) string {
	text := f.text(name)
	if text == "" || slices.Contains(known, text) {
		return text
	}
	n, _ := f.get(name)
	f.report(n, code, suggest(text, known), "%s: unknown %s %q", f.what, kind, text)
	return ""
}

// suggest proposes the nearest choice, or lists them all.
func suggest(text string, choices []string) string {
	if near := diag.Nearest(text, choices); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(choices) == 0 {
		return ""
	}
	if len(choices) > 12 {
		return fmt.Sprintf("one of %s, … (%d in all)", strings.Join(choices[:12], ", "), len(choices))
	}
	return "one of " + strings.Join(choices, ", ")
}

// quoteNode names a value in a message.
func quoteNode(n yamltree.Node) string {
	if n.Kind != yamltree.Scalar {
		return n.Kind.String()
	}
	if yamltree.IsNull(n) {
		return "empty"
	}
	return fmt.Sprintf("%q", shorten(n.Text))
}
