package syntax

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// Value is the value of an option that is being read.
type Value struct {
	Problems *Problems
	Reading  Reading
	Option   *Option
	Raw      RawOption
	Text     string
	// Seen is the text as fio sees it: with a leading blank if one follows the equals sign.
	Seen   string
	KB     int64 // value of k: 1024 or 1000
	Kind   Kind
	Errors int // reported so far
}

// valueBytesMax bounds one value.
const valueBytesMax = 64 << 10

func (a *Value) place(severity diag.Severity, code, message, hint string) {
	column, width := a.Raw.ValueColumn, len(a.Raw.Value)
	if a.Raw.Bare || width == 0 || code == "refused-option" || code == "option-ignored" {
		column, width = a.Raw.Pos.Column, len(a.Raw.Key)
	}
	pos := a.Raw.Pos
	pos.Column = column
	a.Problems.Report(diag.Diagnostic{
		Code: code, Severity: severity, Pos: pos, Width: width, Source: a.Raw.Source, Message: message, Hint: hint,
	})
}

// Problem reports an error at the value, or at the key if the key is wrong.
func (a *Value) Problem(code, message, hint string) {
	a.Errors++
	a.place(diag.SeverityError, code, message, hint)
}

// Warn reports a warning at the same place.
func (a *Value) Warn(code, message, hint string) { a.place(diag.SeverityWarning, code, message, hint) }

// Bad reports a value that cannot be read.
func (a *Value) Bad(want string) {
	a.Problem("bad-value", fmt.Sprintf("%s=%s: %s", a.Option.Key, a.Text, want), "")
}

// Meant warns that the value is read as its author meant it although fio reads it differently.
func (a *Value) Meant(taken, fio string) {
	message := fmt.Sprintf("%s is taken as %s; fio itself reads %s", a.Written(), taken, fio)
	if a.Reading == Strict {
		message = fmt.Sprintf("%s is doubtful: probably %s, but fio reads %s", a.Written(), taken, fio)
	}
	a.Warn("fio-reads-otherwise", message, fmt.Sprintf("write %s=%s", a.Option.Key, taken))
}

// RefusedByFio warns that the value is read as its author meant it although fio stops with an error.
func (a *Value) RefusedByFio(taken string) {
	hint := fmt.Sprintf("write %s=%s", a.Option.Key, taken)
	switch a.Reading {
	case Exact:
		a.Problem("fio-refuses", fmt.Sprintf("%s is probably %s, but fio refuses it", a.Written(), taken), hint)
	case Strict:
		a.Warn("fio-refuses", fmt.Sprintf("%s is doubtful: probably %s, but fio refuses it", a.Written(), taken), hint)
	default:
		a.Warn("fio-refuses", fmt.Sprintf("%s is taken as %s; fio itself refuses it", a.Written(), taken), hint)
	}
}

// Written is the option as written in the file, in quotes.
func (a *Value) Written() string {
	if a.Raw.Bare {
		return strconv.Quote(a.Raw.Key)
	}
	blank := ""
	if a.Raw.BlankBefore {
		blank = " "
	}
	return strconv.Quote(a.Raw.Key + "=" + blank + a.Raw.Value)
}

// Expand replaces variables and keywords and sets the option's Value. It returns false after reporting an error.
func (a *Value) Expand(lookup func(name string) (string, bool), keywords map[string]int64) bool {
	text, missing := a.Raw.Value, []string(nil)
	if !a.Raw.Literal {
		text, missing = ExpandEnvironment(text, lookup)
	}
	if len(text) > valueBytesMax {
		a.Problem("value-too-long", fmt.Sprintf("the value of %s has more than %d bytes", a.Option.Key, valueBytesMax), "")
		return false
	}
	if len(missing) > 0 {
		name := missing[0]
		if strings.TrimSpace(text) == "" && !a.emptyAllowed() {
			a.Problem("variable-without-value", fmt.Sprintf("variable %q has no value, so that %s is empty", name, a.Option.Key),
				fmt.Sprintf("set %s or write the value", name))
			return false
		}
		a.Warn("variable-without-value", fmt.Sprintf("variable %q has no value and is left out", name), "")
	}
	var err error
	if !a.Raw.Literal {
		text, err = expandKeywords(text, keywords)
	}
	if err != nil {
		a.Text = a.Raw.Value
		a.Bad(err.Error())
		return false
	}
	a.Text = strings.TrimSpace(text)
	a.Seen = a.Text
	if a.Raw.BlankBefore {
		a.Seen = " " + a.Text
	}
	a.Option.Value, a.Option.Exact = a.Text, a.Text
	return true
}

// emptyAllowed reports whether fio accepts an option with an empty text: a log gets its default name.
func (a *Value) emptyAllowed() bool {
	return strings.HasPrefix(a.Option.Key, "write_") && a.Option.Report
}

// Blank warns about a blank after "=", which fio includes in a text.
func (a *Value) Blank() {
	if a.Raw.BlankBefore && a.Reading != Exact {
		a.Meant(a.Text, "a text that starts with a blank")
	}
}

// Number reads one number with bounds and warns if fio would read another.
func (a *Value) Number(text string, low, high int64) (int64, bool) {
	n, err := a.BytesNumber(text)
	switch {
	case err != nil:
		a.Bad(err.Error())
		return 0, false
	case n.IsPercent && high == PercentMax && n.Percent == math.Trunc(n.Percent):
		// fio accepts percentages only for sizes, and reads this as a negative number.
		a.Meant(strconv.FormatInt(int64(n.Percent), 10), strconv.FormatInt(-1-int64(n.Percent), 10))
		a.KeepNumber(Number{Value: int64(n.Percent)})
		return int64(n.Percent), true
	case n.IsPercent:
		a.Bad("a percentage is not possible here")
		return 0, false
	case n.Value < low || n.Value > high:
		a.Bad(boundsText(low, high))
		return 0, false
	}
	a.Explain(n)
	a.KeepNumber(Number{Value: n.Value})
	return n.Value, true
}

// PercentMax is the maximum of whole percentages.
const PercentMax = 100

// Explain warns if fio reads the text of n differently: a fraction, an unknown suffix, a blank before a suffix.
func (a *Value) Explain(n MeantNumber) {
	switch {
	case n.Literal == "":
	case n.IsPercent:
		a.Warn("fio-reads-otherwise", fmt.Sprintf("%s is taken as %s %%; fio itself reads %s bytes", a.Written(),
			strconv.FormatFloat(n.Percent, 'f', -1, 64), n.Literal), "write whole percentages or bytes")
	default:
		a.Meant(shortNumber(n.Value, a.KB), n.Literal)
	}
}

// shortNumber prints n with the largest of fio's suffixes that is exact.
func shortNumber(n, kb int64) string {
	suffixes := "kmgtp"
	power := 0
	for n != 0 && n%kb == 0 && power < len(suffixes) {
		n /= kb
		power++
	}
	text := strconv.FormatInt(n, 10)
	if power > 0 {
		text += suffixes[power-1 : power]
	}
	return text
}

func boundsText(low, high int64) string {
	switch {
	case high == math.MaxInt64 || high == math.MaxInt32:
		return fmt.Sprintf("want at least %d", low)
	case low == math.MinInt64:
		return fmt.Sprintf("want at most %d", high)
	}
	return fmt.Sprintf("want %d to %d", low, high)
}

// Triple reads "read[,write[,trim]]": a single value sets all, two values set trim to the second, and an empty place keeps
// its value. It calls one for every direction that has a value and returns the texts as set.
func (a *Value) Triple(one func(d int, text string) (exact string, ok bool)) {
	if strings.Trim(a.Text, ", \t") == "" {
		a.Bad("want a value")
		return
	}
	parts := strings.Split(a.Seen, ",")
	if len(parts) > 3 {
		a.Bad("want at most three values, for read, write and trim")
		return
	}
	exact := make([]string, len(parts))
	texts := make([]string, 3)
	copy(texts, parts)
	switch len(parts) {
	case 1:
		texts[1], texts[2] = parts[0], parts[0]
	case 2:
		texts[2] = parts[1]
	}
	for d, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		out, ok := one(d, text)
		if !ok {
			return
		}
		if d < len(exact) {
			exact[d] = out
		}
	}
	a.Option.Exact = strings.Join(exact, ",")
}

// Boolean reads 0 and 1, and, if bareAllowed, the key alone as 1.
func (a *Value) Boolean(field *bool, bareAllowed bool) {
	if a.Raw.Bare {
		*field = true
		a.Option.Exact = "1"
		if !bareAllowed {
			a.RefusedByFio("1")
		}
		return
	}
	switch strings.ToLower(a.Text) {
	case "1":
		*field, a.Option.Exact = true, "1"
	case "0":
		*field, a.Option.Exact = false, "0"
	case "true", "yes", "on":
		*field, a.Option.Exact = true, "1"
		a.RefusedByFio("1")
	case "false", "no", "off":
		*field, a.Option.Exact = false, "0"
		a.RefusedByFio("0")
	default:
		a.Bad("want 0 or 1")
	}
}

// FormatBytes prints a number of bytes for fio, without kb_base, so that k is 1024.
func FormatBytes(n int64) string { return shortNumber(n, 1024) }

// Time reads one time and warns if fio would read another.
func (a *Value) Time(text string, unit time.Duration) (time.Duration, bool) {
	d, literal, err := readTime(text, unit)
	if err != nil {
		a.Bad(err.Error())
		return 0, false
	}
	if literal != "" {
		a.Meant(FormatTime(d), literal)
	}
	a.KeepNumber(Number{Value: d.Microseconds()})
	return d, true
}

// KeepNumber records a number that was read; the exact reading records all of them itself.
func (a *Value) KeepNumber(n Number) {
	if a.Reading != Exact {
		a.Option.Numbers = append(a.Option.Numbers, n)
	}
}

// BytesNumber reads one number of a list in the selected reading.
func (a *Value) BytesNumber(text string) (MeantNumber, error) {
	if a.Reading != Exact {
		return ReadNumber(text, a.KB)
	}
	n, ok := ExactNumber(text, a.KB)
	if !ok {
		return MeantNumber{}, errNumber
	}
	return MeantNumber{Value: n.Value, Percent: float64(n.Value), IsPercent: n.Percent}, nil
}

// Choice reads one of values; alias maps other spellings to them.
func (a *Value) Choice(text string, values []string, alias map[string]string) (string, bool) {
	if a.Reading == Exact {
		// fio reads only the first word of a list.
		if i := strings.IndexAny(text, ",:"); i >= 0 {
			text = text[:i]
		}
	}
	if to, ok := alias[text]; ok {
		if a.Raw.BlankBefore {
			a.RefusedByFio(to)
		}
		return to, true
	}
	if lower := strings.ToLower(text); slices.Contains(values, lower) {
		if lower != text || a.Raw.BlankBefore {
			a.RefusedByFio(lower)
		}
		return lower, true
	}
	hint := "one of " + strings.Join(values, ", ")
	if near := diag.Nearest(text, values); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	a.Problem("bad-value", fmt.Sprintf("%s has no value %q", a.Option.Key, text), hint)
	return "", false
}

// FormatTime prints a time in the largest unit that fits it exactly.
func FormatTime(d time.Duration) string {
	switch {
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d%time.Millisecond == 0:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
	}
	return strconv.FormatInt(int64(d/time.Microsecond), 10) + "us"
}

// Refuse reports that this value of the option is refused.
func (a *Value) Refuse(why, hint string) {
	a.Option.Class, a.Option.Why = Refused, why
	a.Problem("refused-option", fmt.Sprintf("%s=%s is refused: %s", a.Option.Key, a.Text, why), hint)
}

// Delegate records that only fio supports this value of an option that is otherwise native.
func (a *Value) Delegate(why string) { a.Option.Class, a.Option.Why = Delegate, why }
