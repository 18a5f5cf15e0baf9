package draw

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// Quantity prints a value in the unit of its result, with a prefix and three significant digits: "75.7k IOPS", "212 MB/s", "1.53
// ms". NaN, a missing value, is "–".
func Quantity(value float64, name string) string {
	text := Amount(value, name)
	if base, _ := BaseUnit(name); base != "" && text != "–" && !OwnsPrefix(base) {
		text += " " + base
	}
	return text
}

// Amount is Quantity without a unit that the heading of a table already has: "75.7k" of "75.7k IOPS". Units that take the prefix
// stay: "212 MB/s".
func Amount(value float64, name string) string {
	base, factor := BaseUnit(name)
	value *= factor
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "–"
	case base == "s":
		return scale(value, timePrefixes, base)
	case base == "B":
		return scale(value, binaryPrefixes, base)
	case OwnsPrefix(base):
		return scale(value, decimalPrefixes, base)
	}
	return scale(value, decimalPrefixes, "")
}

// BaseUnit returns the unit without its prefix and the factor between them, so that "kB/s" and "MHz" are scaled like other units.
func BaseUnit(name string) (string, float64) {
	switch name {
	case "kB/s":
		return "B/s", 1e3
	case "MB/s":
		return "B/s", 1e6
	case "MB":
		return "B", 1e6
	case "MHz":
		return "Hz", 1e6
	case "ns":
		return "s", 1e-9
	case "us", "µs":
		return "s", 1e-6
	case "ms":
		return "s", 1e-3
	}
	return name, 1
}

// OwnsPrefix reports whether the prefix belongs to the unit ("12 MB/s") and not to the number ("12k IOPS").
func OwnsPrefix(base string) bool {
	return base == "s" || base == "B/s" || base == "b/s" || base == "Hz" || base == "B" || base == "W"
}

// prefix is one step of a scale: from is the smallest rounded value, in the base unit, that uses it.
type prefix struct {
	factor float64
	symbol string
}

var (
	decimalPrefixes = []prefix{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}}
	binaryPrefixes  = []prefix{{1, ""}, {1 << 10, "Ki"}, {1 << 20, "Mi"}, {1 << 30, "Gi"}, {1 << 40, "Ti"}, {1 << 50, "Pi"}}
	timePrefixes    = []prefix{{1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""}}
)

// scale prints v with the prefix that leaves one to three digits before the point. Without a unit the prefix follows the number
// directly: "75.7k".
func scale(v float64, prefixes []prefix, unitName string) string {
	sign := ""
	if v < 0 {
		sign, v = "−", -v
	}
	i := 0
	for i+1 < len(prefixes) && v/prefixes[i].factor >= 999.5 {
		i++
	}
	if v == 0 {
		i = slices.IndexFunc(prefixes, func(p prefix) bool { return p.factor == 1 })
	}
	scaled := v / prefixes[i].factor
	text := sign + unit.ThreeDigits(scaled)
	if unitName == "" && i == 0 && scaled == math.Trunc(scaled) || v == 0 {
		text = sign + strconv.FormatFloat(scaled, 'f', 0, 64) // a count, not a measurement
	}
	if unitName == "" {
		return text + prefixes[i].symbol
	}
	return text + " " + prefixes[i].symbol + unitName
}

// Duration prints nanoseconds for a reader; 0 is "0 s".
func Duration(nanos int64) string {
	if nanos == 0 {
		return "0 s"
	}
	return unit.FormatDuration(time.Duration(nanos))
}

// Signed prints a difference with its sign.
func Signed(text string) string {
	if text == "–" || strings.HasPrefix(text, "−") || text[0] == '0' && len(text) == 1 {
		return text
	}
	return "+" + text
}
