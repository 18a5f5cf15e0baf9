// Package unit parses and prints sizes, durations, rates and percentages the way the rest of the program shows them.
//
// Sizes are bytes in powers of 1024 (KiB, MiB, …), as fio and X-Ray count them; rates of bytes are printed in powers of
// 1000 (MB/s), as disks, fio's summary in parentheses and networks are labelled. Every printed number carries its unit.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
	GiB int64 = 1 << 30
	TiB int64 = 1 << 40
)

// FormatBytes prints n with a binary prefix and at most three significant digits: "1.5 GiB", "512 B".
func FormatBytes(n int64) string {
	if n < 0 {
		return "−" + FormatBytes(-max(n, -math.MaxInt64))
	}
	if n < KiB {
		return fmt.Sprintf("%d B", n)
	}
	value, prefixes := float64(n), "KMGTPE"
	i := -1
	for value >= 1023.5 && i+1 < len(prefixes) {
		value /= 1024
		i++
	}
	return significant(value) + " " + prefixes[i:i+1] + "iB"
}

// FormatRate prints bytes per second with a decimal prefix: "212 MB/s".
func FormatRate(bytesPerSecond float64) string { return scaled(bytesPerSecond, "B/s") }

// FormatCount prints a count or count per second with a decimal prefix and no unit: "75.7k", "950".
func FormatCount(n float64) string { return strings.Replace(scaled(n, ""), " ", "", 1) }

func scaled(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	sign := ""
	if v < 0 {
		sign, v = "−", -v
	}
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for v >= 999.5 && i+1 < len(prefixes) {
		v /= 1000
		i++
	}
	return strings.TrimSpace(sign + significant(v) + " " + prefixes[i] + unit)
}

// FormatLatency prints nanoseconds in the unit that suits them: "87 µs", "1.53 ms", "2.1 s".
func FormatLatency(nanos float64) string {
	switch {
	case math.IsNaN(nanos) || math.IsInf(nanos, 0):
		return "–"
	case nanos < 999.5:
		return significant(nanos) + " ns"
	case nanos < 999.5e3:
		return significant(nanos/1e3) + " µs"
	case nanos < 999.5e6:
		return significant(nanos/1e6) + " ms"
	}
	return significant(nanos/1e9) + " s"
}

// ThreeDigits prints v >= 0 with three significant digits and no exponent: "75.7", "1.50", "0.0512".
func ThreeDigits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.00995:
		return strconv.FormatFloat(v, 'f', min(12, 2-int(math.Floor(math.Log10(v)))), 64)
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.0995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// significant is ThreeDigits without zeros at the end.
func significant(v float64) string {
	if v >= 99.95 {
		return ThreeDigits(v)
	}
	return trimZeros(ThreeDigits(v))
}

// trimZeros removes trailing zeros of a fraction; whole numbers stay unchanged.
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// FormatPercent prints a ratio as a percentage: 0.123 is "12.3 %".
func FormatPercent(ratio float64) string {
	v := ratio * 100
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	sign := ""
	if v < 0 {
		sign, v = "−", -v
	}
	// A ratio such as 0.07 is not exact in binary, but means 7 %.
	if math.Abs(v-math.Round(v)) < 1e-9 {
		return sign + strconv.FormatFloat(v, 'f', 0, 64) + " %"
	}
	return sign + ThreeDigits(v) + " %"
}

// FormatWhole prints a whole number with groups of three digits: "1,234,567".
func FormatWhole(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// FormatClock prints a time on the run's axis as "m:ss" or "h:mm:ss".
func FormatClock(nanos int64) string {
	sign := ""
	if nanos < 0 {
		sign, nanos = "−", -nanos
	}
	s := (nanos + int64(time.Second)/2) / int64(time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%s%d:%02d:%02d", sign, s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%s%d:%02d", sign, s/60, s%60)
}

// FormatDuration prints d for a reader: "350 ms", "45 s", "1 m 30 s", "2 h 5 m".
func FormatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + FormatDuration(-max(d, -math.MaxInt64)) // the smallest has no opposite
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return significant(d.Seconds()) + " s"
	case d < time.Hour:
		d = d.Round(time.Second)
		return joinUnits(int64(d/time.Minute), "m", int64(d%time.Minute/time.Second), "s")
	}
	d = d.Round(time.Minute)
	return joinUnits(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "m")
}

func joinUnits(a int64, unitA string, b int64, unitB string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unitA)
	}
	return fmt.Sprintf("%d %s %d %s", a, unitA, b, unitB)
}

// ParseBytes reads "4096", "64k", "1.5 GiB", "2G" as bytes in powers of 1024. Errors name the text.
func ParseBytes(text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	suffix := strings.TrimSpace(s[len(digits):])
	suffix = strings.TrimSuffix(strings.TrimSuffix(suffix, "b"), "i")
	shift := strings.Index("kmgtpe", suffix)
	switch {
	case suffix == "":
		shift = -1
	case len(suffix) != 1 || shift < 0:
		return 0, fmt.Errorf("size %q: unknown unit", text)
	}
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, fmt.Errorf("size %q: want a number with k, M, G or T", text)
	}
	value *= math.Pow(1024, float64(shift+1))
	if value >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: too large", text)
	}
	return int64(value), nil
}

// FormatWholePercent prints a share in whole percent.
func FormatWholePercent(share float64) string { return FormatPercent(math.Round(share*100) / 100) }
