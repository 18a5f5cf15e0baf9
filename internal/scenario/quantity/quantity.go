// Package quantity reads numbers with units, as thresholds have them: "5 ms", "10k", "30 %". Which units fit, its caller knows.
package quantity

import (
	"fmt"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// Units maps units to factors. The empty unit is that of a bare number; without it, a number needs a unit.
type Units map[string]float64

// Units of the kinds of quantities, with the unit of the result.
var (
	Counts  = Units{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "iops": 1, "k iops": 1e3, "M iops": 1e6}
	Totals  = Units{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
	Ratios  = Units{"": 1, "%": 0.01}
	Percent = Units{"%": 0.01}
	Times   = Units{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}                   // nanoseconds
	Spans   = Units{"": 1, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400} // seconds
	// Rates of bytes: decimal prefixes are powers of 1000, those with i powers of 1024.
	ByteRates = Units{"": 1, "B/s": 1, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
		"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30, "TiB/s": 1 << 40}
	Plain = Units{"": 1}
)

// Parse reads a finite number with one of the units.
func Parse(text string, u Units) (float64, error) {
	end := len(text) - len(strings.TrimLeft(text, "+-.0123456789"))
	if rest := text[end:]; len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') && strings.Trim(rest[1:2], "+-0123456789") == "" {
		end += 1 + len(rest[1:]) - len(strings.TrimLeft(rest[1:], "+-0123456789"))
	}
	number, unit := text[:end], strings.TrimSpace(text[end:])
	v, ok := yamltree.AsNumber(yamltree.Node{Text: number})
	if !ok {
		return 0, fmt.Errorf("%q does not begin with a number", text)
	}
	factor, ok := u[unit]
	for name, f := range u { // prefixes are case-sensitive only where case distinguishes milli from mega
		if !ok && strings.EqualFold(name, unit) && name != "M" {
			factor, ok = f, true
		}
	}
	switch {
	case !ok && unit == "":
		return 0, fmt.Errorf("%q needs a unit: %s", text, u.names())
	case !ok:
		return 0, fmt.Errorf("%q has the unit %q, and one of %s is wanted", text, unit, u.names())
	}
	v *= factor
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return v, nil
}

// names lists the units in the order of their size.
func (u Units) names() string {
	var out []string
	for _, candidate := range []string{"ns", "us", "ms", "s", "min", "h", "d", "%", "k", "M", "G", "B/s", "kB/s", "MB/s", "GB/s", "TB/s",
		"KiB/s", "MiB/s", "GiB/s", "TiB/s", "iops"} {
		if _, ok := u[candidate]; ok {
			out = append(out, candidate)
		}
	}
	return strings.Join(out, ", ")
}
