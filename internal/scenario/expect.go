package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// expectKeys are the keys of the long form of a threshold.
var expectKeys = []string{"that", "window", "event", "vms"}

// expectVMs are the VMs of the cost of an event: those that lived on, or those that it took away.
var expectVMs = []string{"lived_on", "taken_away"}

// statistics of a threshold; aliases are other common spellings of them.
var (
	statistics = []string{"mean", "median", "p95", "p99", "p99.9", "max", "min", "cv", "time_to_complete", "longest_stall", "seconds_at_zero",
		"interval_mean", "interval_median", "interval_max", "interval_min", "interval_cv",
		"corrected_mean", "corrected_median", "corrected_p95", "corrected_p99", "corrected_p99.9",
		"dip", "recovery", "recovery_10", "stall", "lost_operations", "first_io"}
	ofEvents  = []string{"dip", "recovery", "recovery_10", "stall", "lost_operations", "first_io"} // the cost of an event
	aliases   = map[string]string{"avg": "mean", "average": "mean", "p50": "median", "maximum": "max", "minimum": "min"}
	operators = []string{"<=", ">=", "==", "!=", "<", ">"} // the longer ones are tried first
)

// thresholds reads the extension's list of thresholds: texts, or mappings of that and window.
func (r resultParser) thresholds() {
	n, ok := r.get("expect")
	if !ok {
		return
	}
	items := []yamltree.Node{n}
	if n.Kind == yamltree.Sequence {
		items = n.Items
	}
	for _, item := range items {
		text, long, at := item, fields{}, item
		if item.Kind == yamltree.Mapping {
			e := r.mapping(item, r.key["expect"], "a threshold of "+r.what, expectKeys)
			e.require("that")
			text, long = e.value["that"], e
			for _, key := range []string{"event", "window"} {
				if n, ok := e.get(key); ok {
					at = n
				}
			}
			if _, ok := e.get("that"); !ok {
				continue
			}
		}
		if text.Kind != yamltree.Scalar {
			r.report(text, "wrong-type", `for example "p99 < 5 ms"`, "%s: a threshold is %s where text is wanted", r.what, text.Kind)
			continue
		}
		x, err := ParseThreshold(text.Text, r.Type)
		if err != nil {
			r.report(text, "bad-expectation", `for example "p99 < 5 ms" or "mean >= 10k"`, "%s: %v", r.what, err)
			continue
		}
		x.Pos, x.WindowPos = r.pos(text), r.pos(at)
		if long.value != nil {
			x.Window, x.Event, x.VMs = long.text("window"), long.text("event"), long.oneOf("vms", expectVMs)
		}
		switch {
		case x.OfEvent() && x.Window != "":
			r.report(at, "bad-expectation", "name the step: event", "%s: %s is the cost of an event, not of a window", r.what, x.Statistic)
			continue
		case !x.OfEvent() && x.Event+x.VMs != "":
			r.report(at, "bad-expectation", "events cost "+strings.Join(ofEvents, ", "), "%s: an event has no %s", r.what, x.Statistic)
			continue
		}
		r.Expect = append(r.Expect, x)
	}
}

// ParseThreshold reads a threshold such as "p99 < 5 ms" or "mean >= 10k" for a result of the given result_type. The value is
// converted to the unit of the result: IOPS, bytes per second, nanoseconds; seconds for times to complete and stalls; otherwise a plain
// number, also for cv, which is a ratio and may be written in percent.
func ParseThreshold(text, resultType string) (Threshold, error) {
	x := Threshold{Text: strings.TrimSpace(text)}
	at, op := -1, ""
	for i := range len(x.Text) {
		for _, o := range operators {
			if op == "" && strings.HasPrefix(x.Text[i:], o) {
				at, op = i, o
			}
		}
	}
	switch {
	case op == "" && strings.Contains(x.Text, "="):
		return x, fmt.Errorf("threshold %q: write == for equal", x.Text)
	case op == "":
		return x, fmt.Errorf("threshold %q: no comparison such as < or >=", x.Text)
	case at > 0 && x.Text[at-1] == '=':
		return x, fmt.Errorf("threshold %q: write %s=, not =%s", x.Text, op, op)
	}
	x.Operator = op
	name := strings.ToLower(strings.TrimSpace(x.Text[:at]))
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	for _, s := range statistics {
		if s == name {
			x.Statistic = s
		}
	}
	if x.Statistic == "" {
		return x, fmt.Errorf("threshold %q: no statistic %q, %s", x.Text, name, suggest(name, statistics))
	}
	value := strings.TrimSpace(x.Text[at+len(op):])
	if value == "" {
		return x, fmt.Errorf("threshold %q: a value is missing after %s", x.Text, op)
	}
	v, err := parseQuantity(value, unitsFor(x.Statistic, resultType))
	if err != nil {
		return x, fmt.Errorf("threshold %q: %w", x.Text, err)
	}
	x.Value = v
	return x, nil
}

// OfEvent reports whether the threshold limits the cost of an event.
func (x *Threshold) OfEvent() bool { return slices.Contains(ofEvents, x.Statistic) }

// units maps units to factors. The empty unit is that of a bare number; without it, a number needs a unit.
type units map[string]float64

var (
	countUnits = units{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "iops": 1, "k iops": 1e3, "M iops": 1e6}
	ratioUnits = units{"": 1, "%": 0.01}
	timeUnits  = units{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9} // converted to nanoseconds
	spanUnits  = units{"": 1, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
	// Rates of bytes: decimal prefixes are powers of 1000, those with i powers of 1024.
	byteUnits = units{"": 1, "B/s": 1, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
		"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30, "TiB/s": 1 << 40}
	boolUnits = units{"": 1}
)

func unitsFor(statistic, resultType string) units {
	switch {
	case statistic == "cv", statistic == "interval_cv", statistic == "dip":
		return ratioUnits
	case statistic == "time_to_complete", statistic == "longest_stall", statistic == "seconds_at_zero",
		statistic == "stall", statistic == "recovery", statistic == "recovery_10", statistic == "first_io":
		return spanUnits
	case statistic == "lost_operations":
		return units{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
	}
	switch resultType {
	case "bandwidth":
		return byteUnits
	case "latency":
		return timeUnits
	case "active":
		return boolUnits
	}
	return countUnits
}

// parseQuantity reads a finite number with one of the units.
func parseQuantity(text string, u units) (float64, error) {
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
func (u units) names() string {
	var out []string
	for _, candidate := range []string{"ns", "us", "ms", "s", "min", "h", "d", "%", "k", "M", "G", "B/s", "kB/s", "MB/s", "GB/s", "TB/s",
		"KiB/s", "MiB/s", "GiB/s", "TiB/s", "iops"} {
		if _, ok := u[candidate]; ok {
			out = append(out, candidate)
		}
	}
	return strings.Join(out, ", ")
}

// Holds reports whether a measured value, in the unit of the result, meets the threshold. A missing value never does.
func (x Threshold) Holds(measured float64) bool {
	switch x.Operator {
	case "<":
		return measured < x.Value
	case "<=":
		return measured <= x.Value
	case ">":
		return measured > x.Value
	case ">=":
		return measured >= x.Value
	case "==":
		return measured == x.Value
	case "!=":
		return measured != x.Value && !math.IsNaN(measured)
	}
	return false
}
