package scenario

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/quantity"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
	"github.com/braggdev/bragg/internal/textio"
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
			r.report(text, "bad-expectation", `for example "p99 < 5 ms", "mean >= 10k" or "no worse than baseline"`, "%s: %v", r.what, err)
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
			r.report(at, "bad-expectation", "events cost "+strings.Join(ofEvents, ", "), "%s: an event has no %s", r.what, cmp.Or(x.Statistic, x.Operator))
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
	if m := noWorse.FindStringSubmatch(x.Text); m != nil {
		return x.noWorse(m[1], m[2], resultType)
	}
	at, op := -1, ""
	for i := range len(x.Text) {
		for _, o := range operators {
			if op == "" && strings.HasPrefix(x.Text[i:], o) {
				at, op = i, o
			}
		}
	}
	switch {
	case op == "" && strings.Contains(strings.ToLower(x.Text), "no worse"):
		return x, fmt.Errorf("threshold %q: write %q, and perhaps a tolerance: by 5 %%", x.Text, NoWorse)
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
	v, err := quantity.Parse(value, unitsFor(x.Statistic, resultType))
	if err != nil {
		return x, fmt.Errorf("threshold %q: %w", x.Text, err)
	}
	x.Value = v
	return x, nil
}

// NoWorse is the operator of a threshold against the pinned baseline; Value is the tolerance, a ratio. Without a statistic, it is about
// those that answer whether the result got worse.
const (
	NoWorse          = "no worse than baseline"
	noWorseTolerance = 0.1
)

var noWorse = regexp.MustCompile(`^(?:(\S+)\s+)?` + NoWorse + `(?:\s+by\s+(.*))?$`)

// ExpectsBaseline reports whether any threshold is against the pinned baseline.
func (s *Scenario) ExpectsBaseline() bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool {
		return slices.ContainsFunc(r.Expect, func(x Threshold) bool { return x.Operator == NoWorse })
	})
}

func (x Threshold) noWorse(name, tolerance, resultType string) (Threshold, error) {
	known := map[string][]string{"iops": {"mean", "median"}, "bandwidth": {"mean", "median"}, "latency": {"mean", "median", "p95", "p99", "p99.9"}}[resultType]
	x.Operator, x.Statistic, x.Value = NoWorse, strings.ToLower(name), noWorseTolerance
	if alias, ok := aliases[x.Statistic]; ok {
		x.Statistic = alias
	}
	switch {
	case known == nil:
		return x, fmt.Errorf("threshold %q: only iops, bandwidth and latency can be compared with a baseline", x.Text)
	case slices.Contains(statistics, x.Statistic) && !slices.Contains(known, x.Statistic):
		return x, fmt.Errorf("threshold %q: %s cannot be compared with a baseline, only %s; set a limit for it", x.Text, x.Statistic, textio.JoinAnd(known))
	case name != "" && !slices.Contains(known, x.Statistic):
		return x, fmt.Errorf("threshold %q: no statistic %q, %s", x.Text, name, suggest(name, known))
	case tolerance != "":
		v, err := quantity.Parse(tolerance, quantity.Percent)
		if err != nil || v <= 0 || v >= 1 {
			return x, fmt.Errorf("threshold %q: the tolerance is a percentage between 0 and 100, such as 5 %%", x.Text)
		}
		x.Value = v
	}
	return x, nil
}

// OfEvent reports whether the threshold limits the cost of an event.
func (x *Threshold) OfEvent() bool { return slices.Contains(ofEvents, x.Statistic) }

func unitsFor(statistic, resultType string) quantity.Units {
	switch {
	case statistic == "cv", statistic == "interval_cv", statistic == "dip":
		return quantity.Ratios
	case statistic == "time_to_complete", statistic == "longest_stall", statistic == "seconds_at_zero",
		statistic == "stall", statistic == "recovery", statistic == "recovery_10", statistic == "first_io":
		return quantity.Spans
	case statistic == "lost_operations":
		return quantity.Totals
	}
	switch resultType {
	case "bandwidth":
		return quantity.ByteRates
	case "latency":
		return quantity.Times
	case "active":
		return quantity.Plain
	}
	return quantity.Counts
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
