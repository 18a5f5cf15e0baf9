package syntax

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MeantNumber is a number of a job file, read as its author meant it.
type MeantNumber struct {
	Value     int64
	Percent   float64
	IsPercent bool
	Literal   string // fio's own reading, if it differs
}

var errNumber = errors.New("want a number")

// splitNumber splits text into sign, digits with an optional fraction, and the rest.
func splitNumber(text string) (negative bool, digits, rest string) {
	s := strings.TrimSpace(text)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	end := 0
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		for end = 2; end < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[end]) >= 0; {
			end++
		}
		return negative, s[:end], s[end:]
	}
	for dots := 0; end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' && dots == 0); end++ {
		if s[end] == '.' {
			dots++
		}
	}
	return negative, s[:end], s[end:]
}

// ReadNumber reads an integer with fio's suffixes, or a percentage. kb is 1024 or 1000, the value of a bare k. text is as
// fio sees it, with a leading blank if one follows the equals sign.
func ReadNumber(text string, kb int64) (MeantNumber, error) {
	negative, digits, rest := splitNumber(text)
	if digits == "" || digits == "." {
		return MeantNumber{}, errNumber
	}
	suffix := strings.ToLower(strings.TrimSpace(rest))
	var n MeantNumber
	if suffix == "%" {
		n.IsPercent = true
		value, err := strconv.ParseFloat(digits, 64)
		if err != nil || negative || value > 100 {
			return MeantNumber{}, errors.New("want a percentage from 0 to 100")
		}
		n.Percent = value
		if exact, ok := ExactNumber(text, kb); !ok || !exact.Percent || float64(exact.Value) != value {
			n.Literal = strconv.FormatInt(exact.Value, 10)
		}
		return n, nil
	}
	factor, known := suffixFactor(suffix, kb)
	if !known {
		return MeantNumber{}, fmt.Errorf("%w with one of the suffixes k, m, g, t, p, and not %q", errNumber, suffix)
	}
	value, err := scaledInteger(digits, factor)
	if err != nil {
		return MeantNumber{}, err
	}
	if negative {
		value = -value
	}
	n.Value = value
	if exact, ok := ExactNumber(text, kb); !ok {
		n.Literal = "nothing"
	} else if exact.Percent || exact.Value != value {
		n.Literal = strconv.FormatInt(exact.Value, 10)
	}
	return n, nil
}

var errTooLarge = errors.New("the number is too large")

// scaledInteger returns digits × factor, rounded. digits are decimal, with or without a point, or hexadecimal.
func scaledInteger(digits string, factor int64) (int64, error) {
	if strings.Contains(digits, ".") {
		f, err := strconv.ParseFloat(digits, 64)
		if f *= float64(factor); err != nil || f >= math.MaxInt64 {
			return 0, errTooLarge
		}
		return int64(math.Round(f)), nil
	}
	base := 10
	if hex := strings.TrimPrefix(strings.ToLower(digits), "0x"); len(hex) < len(digits) {
		digits, base = hex, 16
	}
	v, err := strconv.ParseInt(digits, base, 64)
	if err != nil || v > math.MaxInt64/factor {
		return 0, errTooLarge
	}
	return v * factor, nil
}

// suffixFactor reads a suffix as its author meant it: kib is always 1024, although fio with kb_base=1024 reads it as 1000.
func suffixFactor(suffix string, kb int64) (int64, bool) {
	if suffix == "" || suffix == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgtp", suffix[0]) + 1
	if power == 0 {
		return 0, false
	}
	switch suffix[1:] {
	case "", "b":
	case "i", "ib":
		kb = 1024
	default:
		return 0, false
	}
	factor := int64(1)
	for range power {
		factor *= kb
	}
	return factor, true
}

// timeUnits are fio's; wordUnits are common units that fio reads as microseconds.
var timeUnits = map[string]time.Duration{
	"us": time.Microsecond, "usec": time.Microsecond, "ms": time.Millisecond, "msec": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

var wordUnits = map[string]time.Duration{
	"sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour, "day": 24 * time.Hour,
	"days": 24 * time.Hour, "µs": time.Microsecond, "usecs": time.Microsecond, "msecs": time.Millisecond,
	"ns": time.Nanosecond, "nsec": time.Nanosecond,
}

// readTime reads a time whose default unit is unit; text is as fio sees it. literal is fio's own reading, if it differs.
func readTime(text string, unit time.Duration) (d time.Duration, literal string, err error) {
	negative, digits, rest := splitNumber(text)
	if digits == "" || digits == "." || negative {
		return 0, "", errors.New("want a time such as 30s, 5m or 100ms")
	}
	suffix := strings.ToLower(strings.TrimSpace(rest))
	used, known := unit, suffix == ""
	if u, ok := timeUnits[suffix]; ok {
		used, known = u, true
	} else if u, ok := wordUnits[suffix]; ok {
		used, known = u, true
	}
	if known {
		var value int64
		value, err = scaledInteger(digits, int64(used))
		d = time.Duration(value)
	} else if d, err = time.ParseDuration(strings.ToLower(strings.TrimSpace(text))); err != nil { // 1m30s
		err = fmt.Errorf("want a time in us, ms, s, m, h or d, and not %q", suffix)
	}
	if err != nil {
		return 0, "", err
	}
	exact, ok := ExactTime(text, unit)
	read := time.Duration(exact.Value) * time.Microsecond
	switch {
	case !ok:
		literal = "nothing"
	case read != d || exact.Value > int64(math.MaxInt64/time.Microsecond):
		literal = read.String()
	}
	return d, literal, nil
}
