package fiojob

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// arg is the value of one option while it is read.
type arg struct {
	p      *parser
	option *Option
	raw    rawOption
	text   string
	// seen is the text as fio sees it: with a blank in front where one follows the equals sign.
	seen   string
	kb     int64
	kind   kind
	errors int
	// repeated says that the same section had the option before.
	repeated bool
}

// valueBytesMax bounds one value.
const valueBytesMax = 64 << 10

func (a *arg) place(severity diag.Severity, code, message, hint string) {
	column, width := a.raw.valueColumn, len(a.raw.value)
	if a.raw.bare || width == 0 || code == "refused-option" || code == "option-ignored" {
		column, width = a.raw.pos.Column, len(a.raw.key)
	}
	pos := a.raw.pos
	pos.Column = column
	a.p.report(diag.Diagnostic{
		Code: code, Severity: severity, Pos: pos, Width: width, Source: a.raw.source, Message: message, Hint: hint,
	})
}

func (a *arg) problem(code, message, hint string) {
	a.errors++
	a.place(diag.SeverityError, code, message, hint)
}

func (a *arg) warn(code, message, hint string) { a.place(diag.SeverityWarning, code, message, hint) }

// bad reports a value that cannot be read.
func (a *arg) bad(want string) {
	a.problem("bad-value", fmt.Sprintf("%s=%s: %s", a.option.Key, a.text, want), "")
}

// meant warns that the value is read as its author meant it although fio reads it otherwise.
func (a *arg) meant(taken, fio string) {
	message := fmt.Sprintf("%s is taken as %s; fio itself reads %s", a.written(), taken, fio)
	if a.p.options.Reading == Strict {
		message = fmt.Sprintf("%s is doubtful: probably %s, but fio reads %s", a.written(), taken, fio)
	}
	a.warn("fio-reads-otherwise", message, fmt.Sprintf("write %s=%s", a.option.Key, taken))
}

// refusedByFio warns that the value is read as its author meant it although fio stops there.
func (a *arg) refusedByFio(taken string) {
	hint := fmt.Sprintf("write %s=%s", a.option.Key, taken)
	switch a.p.options.Reading {
	case Exact:
		a.problem("fio-refuses", fmt.Sprintf("%s is probably %s, but fio refuses it", a.written(), taken), hint)
	case Strict:
		a.warn("fio-refuses", fmt.Sprintf("%s is doubtful: probably %s, but fio refuses it", a.written(), taken), hint)
	default:
		a.warn("fio-refuses", fmt.Sprintf("%s is taken as %s; fio itself refuses it", a.written(), taken), hint)
	}
}

func (a *arg) written() string {
	if a.raw.bare {
		return strconv.Quote(a.raw.key)
	}
	blank := ""
	if a.raw.blankBefore {
		blank = " "
	}
	return strconv.Quote(a.raw.key + "=" + blank + a.raw.value)
}

// expand replaces variables and keywords and settles the option's Value. It returns false after reporting an error.
func (a *arg) expand() bool {
	text, missing := a.raw.value, []string(nil)
	if !a.raw.literal {
		text, missing = expandEnvironment(text, a.p.options.Env)
	}
	if len(text) > valueBytesMax {
		a.problem("value-too-long", fmt.Sprintf("the value of %s has more than %d bytes", a.option.Key, valueBytesMax), "")
		return false
	}
	if len(missing) > 0 {
		name := missing[0]
		if strings.TrimSpace(text) == "" && !a.emptyAllowed() {
			a.problem("variable-without-value", fmt.Sprintf("variable %q has no value, so that %s is empty", name, a.option.Key),
				fmt.Sprintf("set %s or write the value", name))
			return false
		}
		a.warn("variable-without-value", fmt.Sprintf("variable %q has no value and is left out", name), "")
	}
	var err error
	if !a.raw.literal {
		text, err = expandKeywords(text, a.p.options)
	}
	if err != nil {
		a.text = a.raw.value
		a.bad(err.Error())
		return false
	}
	a.text = strings.TrimSpace(text)
	a.seen = a.text
	if a.raw.blankBefore {
		a.seen = " " + a.text
	}
	a.option.Value, a.option.Exact = a.text, a.text
	return true
}

// emptyAllowed reports whether fio takes an option without a text: a log gets its usual name.
func (a *arg) emptyAllowed() bool {
	return strings.HasPrefix(a.option.Key, "write_") && a.option.Report
}

// blank warns about a blank after "=", which fio takes into a text.
func (a *arg) blank() {
	if a.raw.blankBefore && a.p.options.Reading != Exact {
		a.meant(a.text, "a text that starts with a blank")
	}
}

// number reads one number with bounds and warns where fio would read another.
func (a *arg) number(text string, low, high int64) (int64, bool) {
	n, err := a.bytesNumber(text)
	switch {
	case err != nil:
		a.bad(err.Error())
		return 0, false
	case n.isPct && high == percentMax && n.percent == math.Trunc(n.percent):
		// fio has percent signs for sizes only, and takes this for a negative number.
		a.meant(strconv.FormatInt(int64(n.percent), 10), strconv.FormatInt(-1-int64(n.percent), 10))
		a.keepNumber(Number{Value: int64(n.percent)})
		return int64(n.percent), true
	case n.isPct:
		a.bad("a percentage is not possible here")
		return 0, false
	case n.value < low || n.value > high:
		a.bad(boundsText(low, high))
		return 0, false
	}
	a.explain(n)
	a.keepNumber(Number{Value: n.value})
	return n.value, true
}

const percentMax = 100

// explain warns when fio reads the text of n otherwise: a fraction, an unknown suffix, a blank in front of a suffix.
func (a *arg) explain(n number) {
	switch {
	case n.literal == "":
	case n.isPct:
		a.warn("fio-reads-otherwise", fmt.Sprintf("%s is taken as %s %%; fio itself reads %s bytes", a.written(),
			strconv.FormatFloat(n.percent, 'f', -1, 64), n.literal), "write whole percentages or bytes")
	default:
		a.meant(shortNumber(n.value, a.kb), n.literal)
	}
}

// shortNumber prints n with the largest of fio's suffixes that loses nothing.
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

// triple reads "read[,write[,trim]]": one value holds for all, two give trim the second, an empty place stays as it
// was. It calls one for every direction that has a value and returns the texts as set.
func (a *arg) triple(one func(d Direction, text string) (exact string, ok bool)) {
	if strings.Trim(a.text, ", \t") == "" {
		a.bad("want a value")
		return
	}
	parts := strings.Split(a.seen, ",")
	if len(parts) > 3 {
		a.bad("want at most three values, for read, write and trim")
		return
	}
	exact := make([]string, len(parts))
	texts := make([]string, 3)
	copy(texts, parts)
	switch len(parts) {
	case 1:
		texts[Write], texts[Trim] = parts[0], parts[0]
	case 2:
		texts[Trim] = parts[1]
	}
	for d, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		out, ok := one(Direction(d), text)
		if !ok {
			return
		}
		if d < len(exact) {
			exact[d] = out
		}
	}
	a.option.Exact = strings.Join(exact, ",")
}

// apply reads the value of an option into a job.
type apply func(j *Job, a *arg)

// flag reads the options that are on without a value.
func flag(field func(*Job) *bool) apply {
	return func(j *Job, a *arg) { a.boolean(field(j), true) }
}

// boolean reads 0 and 1.
func boolean(field func(*Job) *bool) apply {
	return func(j *Job, a *arg) { a.boolean(field(j), false) }
}

func (a *arg) boolean(field *bool, bareAllowed bool) {
	if a.raw.bare {
		*field = true
		a.option.Exact = "1"
		if !bareAllowed {
			a.refusedByFio("1")
		}
		return
	}
	switch strings.ToLower(a.text) {
	case "1":
		*field, a.option.Exact = true, "1"
	case "0":
		*field, a.option.Exact = false, "0"
	case "true", "yes", "on":
		*field, a.option.Exact = true, "1"
		a.refusedByFio("1")
	case "false", "no", "off":
		*field, a.option.Exact = false, "0"
		a.refusedByFio("0")
	default:
		a.bad("want 0 or 1")
	}
}

// count reads a plain integer. fio takes lists too and uses their first value.
func count(field func(*Job) *int, low, high int64) apply {
	return func(j *Job, a *arg) {
		text := a.seen
		if i := strings.IndexAny(a.text, ",:-"); i > 0 {
			text = a.text[:i]
			a.warn("several-values", fmt.Sprintf("%s: one number is possible, the first counts", a.written()),
				fmt.Sprintf("write %s=%s", a.option.Key, text))
		}
		v, ok := a.number(text, low, high)
		if ok {
			*field(j) = int(v)
			a.option.Exact = strconv.FormatInt(v, 10)
		}
	}
}

// bytesOf reads one number of bytes.
func bytesOf(field func(*Job) *int64, low, high int64) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.number(a.seen, low, high); ok {
			*field(j) = v
			a.option.Exact = FormatBytes(v)
		}
	}
}

// FormatBytes prints a number of bytes for fio, whose k is 1024 without kb_base, which is never printed.
func FormatBytes(n int64) string { return shortNumber(n, 1024) }

// bytesTriple reads bytes for each direction.
func bytesTriple(field func(*Job) *[3]int64, low, high int64) apply {
	return func(j *Job, a *arg) {
		a.triple(func(d Direction, text string) (string, bool) {
			v, ok := a.number(text, low, high)
			if ok {
				field(j)[d] = v
			}
			return FormatBytes(v), ok
		})
	}
}

// countTriple reads integers for each direction.
func countTriple(low, high int64, set func(j *Job, d Direction, v int64)) apply {
	return func(j *Job, a *arg) {
		a.triple(func(d Direction, text string) (string, bool) {
			v, ok := a.number(text, low, high)
			if ok {
				set(j, d, v)
			}
			return strconv.FormatInt(v, 10), ok
		})
	}
}

// size reads bytes or a percentage.
func size(field func(*Job) *Size) apply {
	return func(j *Job, a *arg) {
		n, err := readNumber(a.seen, a.kb)
		if err != nil {
			a.bad(err.Error())
			return
		}
		if n.value < 0 {
			a.bad("want at least 0")
			return
		}
		a.explain(n)
		a.keepNumber(Number{Value: max(n.value, int64(n.percent)), Percent: n.isPct})
		*field(j) = Size{Bytes: n.value, Percent: n.percent, Set: true}
		if n.isPct && n.percent == 0 {
			*field(j) = Size{Set: true}
		}
		a.option.Exact = FormatSize(*field(j))
	}
}

// duration reads a time whose default unit is unit.
func duration(field func(*Job) *time.Duration, unit time.Duration) apply {
	return func(j *Job, a *arg) {
		if d, ok := a.time(a.seen, unit); ok {
			*field(j) = d
			a.option.Exact = formatTime(d)
		}
	}
}

// time reads one time and warns where fio would read another.
func (a *arg) time(text string, unit time.Duration) (time.Duration, bool) {
	d, literal, err := readTime(text, unit)
	if err != nil {
		a.bad(err.Error())
		return 0, false
	}
	if literal != "" {
		a.meant(formatTime(d), literal)
	}
	a.keepNumber(Number{Value: d.Microseconds()})
	return d, true
}

// keepNumber notes a number that was read; the exact reading notes all of them itself.
func (a *arg) keepNumber(n Number) {
	if a.p.options.Reading != Exact {
		a.option.Numbers = append(a.option.Numbers, n)
	}
}

// bytesNumber reads one number of a list, by the requested reading.
func (a *arg) bytesNumber(text string) (number, error) {
	if a.p.options.Reading != Exact {
		return readNumber(text, a.kb)
	}
	n, ok := exactNumber(text, a.kb)
	if !ok {
		return number{}, errNumber
	}
	return number{value: n.Value, percent: float64(n.Value), isPct: n.Percent}, nil
}

// choice reads one of values; alias maps other spellings to them.
func choice(field func(*Job) *string, values []string, alias map[string]string) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.choice(a.text, values, alias); ok {
			*field(j) = v
			a.option.Exact = v
		}
	}
}

func (a *arg) choice(text string, values []string, alias map[string]string) (string, bool) {
	if a.p.options.Reading == Exact {
		// fio looks at the first word of a list only.
		if i := strings.IndexAny(text, ",:"); i >= 0 {
			text = text[:i]
		}
	}
	if to, ok := alias[text]; ok {
		if a.raw.blankBefore {
			a.refusedByFio(to)
		}
		return to, true
	}
	if lower := strings.ToLower(text); slices.Contains(values, lower) {
		if lower != text || a.raw.blankBefore {
			a.refusedByFio(lower)
		}
		return lower, true
	}
	hint := "one of " + strings.Join(values, ", ")
	if near := diag.Nearest(text, values); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	a.problem("bad-value", fmt.Sprintf("%s has no value %q", a.option.Key, text), hint)
	return "", false
}

func textOf(field func(*Job) *string) apply {
	return func(j *Job, a *arg) {
		a.blank()
		*field(j) = a.text
	}
}

// FormatSize prints a Size so that fio reads it back; fio knows whole percentages only.
func FormatSize(s Size) string {
	if s.Percent > 0 {
		return strconv.FormatInt(max(1, int64(s.Percent)), 10) + "%"
	}
	return FormatBytes(s.Bytes)
}

// formatTime prints a time in the largest unit that fits it exactly.
func formatTime(d time.Duration) string {
	switch {
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d%time.Millisecond == 0:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
	}
	return strconv.FormatInt(int64(d/time.Microsecond), 10) + "us"
}
