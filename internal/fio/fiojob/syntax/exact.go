package syntax

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The functions below read numbers as fio 3.33 does; its debug output shows it for thousands of texts. fio never reads the
// whole text: digits end at the first other character, only the first letter of a suffix counts, and the rest is skipped.

// ExactNumber reads the start of text as fio reads a number of bytes or a count. kb is the value of k.
func ExactNumber(text string, kb int64) (Number, bool) {
	value, suffix, ok := ExactDigits(text)
	if !ok || suffix == "" {
		return Number{Value: value}, ok
	}
	lower := strings.ToLower(suffix)
	switch {
	case lower[0] == '%':
		return Number{Value: value, Percent: true}, true
	case lower[0] == 'z':
		return Number{}, false // zones of a zoned device, a unit that only sizes accept
	}
	power := strings.IndexByte("kmgtp", lower[0]) + 1
	if power == 0 {
		return Number{Value: value}, true
	}
	// kib is the opposite of kb: 1000 where kb is 1024.
	if strings.HasPrefix(lower[1:], "ib") {
		kb = 1000 + 1024 - kb
	}
	for range power {
		if value > math.MaxInt64/kb || value < math.MinInt64/kb {
			return Number{}, false
		}
		value *= kb
	}
	return Number{Value: value}, true
}

// ExactTime reads the start of text as fio reads a time, in microseconds. unit is the unit of a plain number. A unit that
// fio does not know counts as microseconds; one that does not directly follow the digits is ignored.
func ExactTime(text string, unit time.Duration) (Number, bool) {
	text, _, _ = strings.Cut(text, ",")
	value, suffix, ok := ExactDigits(text)
	if !ok {
		return Number{}, false
	}
	if suffix = strings.ToLower(suffix); suffix != "" && suffix[0] >= 'a' && suffix[0] <= 'z' {
		unit = time.Microsecond
		if u, known := timeUnits[suffix]; known {
			unit = u
		}
	}
	micros := int64(unit / time.Microsecond)
	if value > math.MaxInt64/micros || value < math.MinInt64/micros {
		return Number{}, false
	}
	return Number{Value: value * micros}, true
}

// ExactDigits returns the number at the start of text and the rest after its digits. A leading blank is skipped before the
// digits, but prevents a suffix.
func ExactDigits(text string) (value int64, suffix string, ok bool) {
	text = strings.TrimRight(text, " \t")
	trimmed := strings.TrimLeft(text, " \t")
	negative := strings.HasPrefix(trimmed, "-")
	unsigned := trimmed
	if negative || strings.HasPrefix(trimmed, "+") {
		unsigned = trimmed[1:]
	}
	base, digits := 10, "0123456789"
	if strings.HasPrefix(strings.ToLower(unsigned), "0x") {
		base, digits = 16, "0123456789abcdefABCDEF"
		if unsigned = unsigned[2:]; len(trimmed) == len(text) {
			suffix = "x" // a unit of time for fio
		}
	}
	end := 0
	for end < len(unsigned) && strings.IndexByte(digits, unsigned[end]) >= 0 {
		end++
	}
	switch {
	case end == 0 && base == 10:
		return 0, "", false
	case end == 0:
		return 0, suffix, true
	}
	value, err := strconv.ParseInt(unsigned[:end], base, 64)
	if err != nil {
		return 0, "", false
	}
	if negative {
		value = -value
	}
	if base == 10 && len(trimmed) == len(text) {
		suffix = unsigned[end:]
	}
	return value, suffix, true
}

// exactPart is one number of a list; ok is false if fio finds none and keeps the previous value.
type exactPart struct {
	Number
	ok bool
}

// exactParts splits text where fio does: after every comma, colon and minus sign, including that of a negative number.
func exactParts(text string, read func(string) (Number, bool)) []exactPart {
	var out []exactPart
	for {
		n, ok := read(text)
		out = append(out, exactPart{n, ok})
		i := strings.IndexAny(text, ",:-")
		if i < 0 || len(out) == exactPartsMax {
			return out
		}
		text = text[i+1:]
	}
}

const exactPartsMax = 64

// exactSwitch reads the start of text as fio reads 0 and 1.
func exactSwitch(text string) (Number, bool) {
	value, _, ok := ExactDigits(text)
	return Number{Value: value}, ok
}
