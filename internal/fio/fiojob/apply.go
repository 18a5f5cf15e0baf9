package fiojob

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// arg is the value of an option that is being read into a job.
type arg struct {
	*syntax.Value
	options *Options
	// repeated reports whether the section has set the option before.
	repeated bool
}

// apply reads the value of an option into a job.
type apply func(j *Job, a *arg)

// flag reads options that are on if they have no value.
func flag(field func(*Job) *bool) apply {
	return func(j *Job, a *arg) { a.Boolean(field(j), true) }
}

// boolean reads 0 and 1.
func boolean(field func(*Job) *bool) apply {
	return func(j *Job, a *arg) { a.Boolean(field(j), false) }
}

// not reads 0 and 1 into a field with the opposite meaning.
func not(field func(*Job) *bool) apply {
	return func(j *Job, a *arg) {
		on := !*field(j)
		a.Boolean(&on, false)
		*field(j) = !on
	}
}

// word reads one of values into a field that is true for on.
func word(field func(*Job) *bool, on string, values ...string) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.Choice(a.Text, values, nil); ok {
			*field(j), a.Option.Exact = v == on, v
		}
	}
}

// count reads a plain integer. Like fio, it uses the first value of a list.
func count(field func(*Job) *int, low, high int64) apply {
	return func(j *Job, a *arg) {
		text := a.Seen
		if i := strings.IndexAny(a.Text, ",:-"); i > 0 {
			text = a.Text[:i]
			a.Warn("several-values", fmt.Sprintf("%s: one number is possible, the first counts", a.Written()),
				fmt.Sprintf("write %s=%s", a.Option.Key, text))
		}
		v, ok := a.Number(text, low, high)
		if ok {
			*field(j) = int(v)
			a.Option.Exact = strconv.FormatInt(v, 10)
		}
	}
}

// bytesOf reads one number of bytes.
func bytesOf(field func(*Job) *int64, low, high int64) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.Number(a.Seen, low, high); ok {
			*field(j) = v
			a.Option.Exact = syntax.FormatBytes(v)
		}
	}
}

// bytesTriple reads bytes for each direction.
func bytesTriple(field func(*Job) *[3]int64, low, high int64) apply {
	return func(j *Job, a *arg) {
		a.Triple(func(d int, text string) (string, bool) {
			v, ok := a.Number(text, low, high)
			if ok {
				field(j)[d] = v
			}
			return syntax.FormatBytes(v), ok
		})
	}
}

// countTriple reads integers for each direction.
func countTriple(low, high int64, set func(j *Job, d Direction, v int64)) apply {
	return func(j *Job, a *arg) {
		a.Triple(func(d int, text string) (string, bool) {
			v, ok := a.Number(text, low, high)
			if ok {
				set(j, Direction(d), v)
			}
			return strconv.FormatInt(v, 10), ok
		})
	}
}

// size reads bytes or a percentage.
func size(field func(*Job) *Size) apply {
	return func(j *Job, a *arg) {
		n, err := syntax.ReadNumber(a.Seen, a.KB)
		if err != nil {
			a.Bad(err.Error())
			return
		}
		if n.Value < 0 {
			a.Bad("want at least 0")
			return
		}
		a.Explain(n)
		a.KeepNumber(syntax.Number{Value: max(n.Value, int64(n.Percent)), Percent: n.IsPercent})
		*field(j) = Size{Bytes: n.Value, Percent: n.Percent, Set: true}
		if n.IsPercent && n.Percent == 0 {
			*field(j) = Size{Set: true}
		}
		a.Option.Exact = FormatSize(*field(j))
	}
}

// duration reads a time whose default unit is unit.
func duration(field func(*Job) *time.Duration, unit time.Duration) apply {
	return func(j *Job, a *arg) {
		if d, ok := a.Time(a.Seen, unit); ok {
			*field(j) = d
			a.Option.Exact = syntax.FormatTime(d)
		}
	}
}

// choice reads one of values; alias maps other spellings to them.
func choice(field func(*Job) *string, values []string, alias map[string]string) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.Choice(a.Text, values, alias); ok {
			*field(j) = v
			a.Option.Exact = v
		}
	}
}

func textOf(field func(*Job) *string) apply {
	return func(j *Job, a *arg) {
		a.Blank()
		*field(j) = a.Text
	}
}

// FormatSize prints a Size so that fio reads it back; fio knows whole percentages only.
func FormatSize(s Size) string {
	if s.Percent > 0 {
		return strconv.FormatInt(max(1, int64(s.Percent)), 10) + "%"
	}
	return syntax.FormatBytes(s.Bytes)
}

// drives escapes the drive letters in a list of names on systems that have them, except in the exact reading.
func drives(a *arg) {
	if !a.options.Windows || a.Reading == syntax.Exact {
		return
	}
	escaped := syntax.EscapeDrives(a.Text)
	if escaped == a.Text {
		return
	}
	a.Warn("fio-reads-otherwise", a.Written()+" names a drive; fio itself takes the colon for the end of a name", "write "+a.Option.Key+"="+escaped)
	a.Text = escaped
}

func setDistribution(j *Job, a *arg) {
	if d, ok := syntax.ReadDistribution(a.Value); ok {
		j.Distribution = d
	}
}

// numberRanges reads "0-3" and "8", numbers below limit.
func numberRanges(parts []string, limit int) (numbers []int, ok bool) {
	for _, part := range parts {
		lowText, highText, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(lowText)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(highText)
		}
		if err != nil || low < 0 || high < low || high >= limit {
			return nil, false
		}
		for n := low; n <= high; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, true
}
