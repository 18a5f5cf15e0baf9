package compare

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario/quantity"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Condition is a change of a number that fails a gate: "p99 > 10%", "iops < -5%", "recovery > 10 s".
type Condition struct {
	Text           string
	metric         string // "iops", "bandwidth", "completion", a statistic of latencies, or a cost of events
	result, window string // names; "" is any result, and the whole of it. Of a cost, the event and the workload
	above          bool
	limit          float64 // relative change; of a cost, the difference in its unit
}

var conditionText = regexp.MustCompile(`^\s*([\w.]+)(?:\s+of\s+"([^"]+)")?(?:\s+in\s+"([^"]+)")?\s*([<>])\s*([-+\d.].*?)\s*$`)

// gateMetrics are the names in conditions, and what they are in results.
var gateMetrics = map[string]struct{ resultType, metric string }{
	"iops": {"iops", "mean"}, "bandwidth": {"bandwidth", "mean"}, "completion": {"", figureCompletion}, "mean": {"latency", "mean"},
	"median": {"latency", "median"}, "p95": {"latency", "p95"}, "p99": {"latency", "p99"}, "p99.9": {"latency", "p99.9"},
}

// ParseCondition reads a condition.
func ParseCondition(text string) (Condition, error) {
	refuse := func(message, hint string) (Condition, error) {
		return Condition{}, &diag.Error{Code: "gate-condition", Exit: diag.ExitUsage, Message: fmt.Sprintf("condition %q: %s", text, message), Hint: hint}
	}
	m := conditionText.FindStringSubmatch(text)
	if m == nil {
		return refuse("not of the form NUMBER > LIMIT", `for example 'p99 > 10%', 'iops < -5%', 'p99 of "Read Latency" in "after nodes.PowerOff" > 20%', 'recovery of "nodes.PowerOff" > 10 s'`)
	}
	c := Condition{Text: strings.TrimSpace(text), metric: strings.ToLower(m[1]), result: m[2], window: m[3], above: m[4] == ">"}
	unitName, ofEvent := costUnit(c.metric)
	if _, ofResults := gateMetrics[c.metric]; !ofResults && !ofEvent {
		return refuse("unknown number "+strconv.Quote(m[1]), "numbers are iops, bandwidth, completion, and mean, median, p95, p99, p99.9 of latency; "+
			"of events "+strings.Join(costNames(), ", "))
	}
	if ofEvent {
		units := costUnits[unitName]
		limit, err := quantity.Parse(m[5], units.of)
		if err != nil {
			return refuse(err.Error(), "the difference of a "+c.metric+" is in "+units.example)
		}
		c.limit = limit * units.factor
		return c, nil
	}
	limit, err := quantity.Parse(m[5], quantity.Percent)
	if err != nil || limit <= -1 {
		return refuse("invalid percentage "+strconv.Quote(m[5]), "a change of "+c.metric+" in per cent of A, more than -100, for example 10%")
	}
	c.limit = limit
	return c, nil
}

// costUnits are the units of limits of costs, by the unit of the cost.
var costUnits = map[string]struct {
	of      quantity.Units
	factor  float64
	example string
}{
	"ratio":      {quantity.Units{"%": 0.01, "pp": 0.01}, 1, "percentage points, for example 5%"},
	"operations": {quantity.Totals, 1, "operations, for example 10k"},
	"ns":         {quantity.Spans, second, "time, for example 10 s or 500 ms"},
}

func costUnit(name string) (unitName string, known bool) {
	for _, f := range costFigures {
		if f.name == name {
			return f.unit, true
		}
	}
	return "", false
}

func costNames() []string {
	var names []string
	for _, f := range costFigures {
		names = append(names, f.name)
	}
	return names
}

// Outcome of a condition.
type Outcome string

const (
	Passed    Outcome = "passed"
	Failed    Outcome = "failed"
	Undecided Outcome = "undecided"
)

// Gate is the outcome of conditions: failed if any change is certainly beyond its limit, passed if all are certainly within.
type Gate struct {
	Outcome Outcome     `json:"outcome"`
	Checks  []GateCheck `json:"checks"`
}

// GateCheck is a condition on one number. It is decided by an interval of the ratio, so wide that all of the gate hold together in 95 %
// of comparisons.
type GateCheck struct {
	Condition string        `json:"condition"`
	Number    string        `json:"number"` // with its window; "" if there is none
	Ratio     result.Number `json:"ratio"`
	Low       result.Number `json:"low"` // of the ratio; of a cost, of the difference
	High      result.Number `json:"high"`
	// Difference is that of the cost of an event, in Unit; otherwise null and "".
	Difference result.Number `json:"difference"`
	Unit       string        `json:"unit"`
	Outcome    Outcome       `json:"outcome"`
	Reason     string        `json:"reason"` // one sentence
}

// Judge evaluates the conditions of a gate on two sets.
func (c *Comparison) Judge(conditions []Condition) {
	var checks []func(confidence float64) GateCheck
	g := &Gate{Outcome: Passed, Checks: []GateCheck{}}
	for i := range conditions {
		of, before := &conditions[i], len(checks)
		for j := range c.Sets.measured {
			if n := &c.Sets.measured[j]; !n.absent() && c.matches(of, n) {
				checks = append(checks, func(confidence float64) GateCheck { return of.check(n, confidence) })
			}
		}
		for _, cost := range c.judgedCosts() {
			for j := range cost.Figures {
				if s := &cost.Figures[j]; cost.matches(of, s) {
					checks = append(checks, func(confidence float64) GateCheck { return of.checkCost(cost.Label(s), s, c.Sets.Base, confidence) })
				}
			}
		}
		if len(checks) == before {
			check := newCheck(of, "")
			check.Reason = "Neither A nor B has such a number."
			if _, ofEvent := costUnit(of.metric); ofEvent {
				check.Reason = "A and B have no such event in common."
			}
			g.Checks = append(g.Checks, check)
		}
	}
	doubt := invalidRuns(c.Runs)
	for _, decide := range checks {
		check := decide(1 - stat.Level/float64(len(checks)))
		if doubt != "" {
			check.Outcome, check.Reason = Undecided, strings.ToUpper(doubt[:1])+doubt[1:]
		}
		g.Checks = append(g.Checks, check)
	}
	for _, check := range g.Checks {
		if check.Outcome == Failed || g.Outcome == Passed {
			g.Outcome = check.Outcome
		}
	}
	c.Gate = g
}

// matches reports whether a condition is about a number.
func (c *Comparison) matches(of *Condition, n *Number) bool {
	want, known := gateMetrics[of.metric]
	if !known || n.Metric != want.metric || n.prefill || !strings.EqualFold(n.Window, of.window) ||
		of.result != "" && !strings.EqualFold(of.result, n.Result) && !strings.EqualFold(of.result, n.Title) {
		return false
	}
	if n.Result == "" {
		return want.resultType == ""
	}
	r := c.result(n.Result)
	return r.Type == want.resultType && r.judgedKind(n.Kind) && (of.result != "" || r.series() == 1)
}

var unknown = result.Number(math.NaN())

func newCheck(of *Condition, number string) GateCheck {
	return GateCheck{Condition: of.Text, Number: number, Ratio: unknown, Low: unknown, High: unknown, Difference: unknown, Outcome: Undecided}
}

func (of *Condition) check(n *Number, confidence float64) GateCheck {
	check := newCheck(of, n.Label()+n.when())
	if n.Series != "" && n.Series != "all" {
		check.Number = n.Measure.Label() + n.when()
	}
	if reason := n.missing(); reason != "" {
		check.Reason = "It is not compared: " + reason + "."
		return check
	}
	r, several := stat.RatioOf(floats(n.Base), floats(n.New), n.resolution)
	if !several {
		check.Ratio = geometricMean(n.New) / geometricMean(n.Base)
		check.Reason = fmt.Sprintf("%s, of %s of A and %s of B: a single run does not show how much it varies from run to run.",
			signedChange(float64(check.Ratio)), textio.Plural(len(n.Base), "run"), textio.Plural(len(n.New), "run"))
		return check
	}
	low, high := r.Interval(confidence)
	check.Ratio, check.Low, check.High = result.Number(r.Value), result.Number(low), result.Number(high)
	check.Reason = fmt.Sprintf("%s (%s to %s)", signedChange(r.Value), signedChange(low), signedChange(high))
	check.decide(of, low, high, 1+of.limit)
	return check
}

// decide compares an interval with the limit.
func (check *GateCheck) decide(of *Condition, low, high, limit float64) {
	switch {
	case of.above && low > limit || !of.above && high < limit:
		check.Outcome = Failed
	case of.above && high <= limit || !of.above && low >= limit:
		check.Outcome = Passed
	case math.IsInf(low, 0) || math.IsInf(high, 0):
		check.Reason += ": a run has only a bound of this number"
	default:
		check.Reason += ": the limit is within the interval; more runs narrow it"
	}
	check.Reason += "."
}

// checkCost compares the difference of a cost with the limit.
func (of *Condition) checkCost(label string, s *Shift, base int, confidence float64) GateCheck {
	check := newCheck(of, label)
	check.Unit = s.Unit
	if reason := s.missing(base); reason != "" {
		check.Reason = "It is not compared: " + reason + "."
		return check
	}
	value, low, high, several := s.interval(base, confidence)
	exact := s.bound() < 0
	if !several {
		if check.Reason = "A single run does not show how much it varies from run to run."; exact && len(s.Values) == 2 {
			check.Difference = s.Differences[1]
			check.Reason = fmt.Sprintf("%s, of one run of A and one of B: a single run does not show how much it varies from run to run.",
				SignedAmount(s.Unit, check.Difference))
		}
		return check
	}
	check.Low, check.High, check.Reason = result.Number(low), result.Number(high), s.IntervalText(low, high)
	if exact {
		check.Difference = result.Number(value)
		check.Reason = SignedAmount(s.Unit, check.Difference) + " (" + check.Reason + ")"
	}
	check.decide(of, low, high, of.limit)
	return check
}

// signedChange prints a ratio as a change: "+12.1 %".
func signedChange(ratio float64) string {
	text := unit.FormatPercent(ratio - 1)
	if ratio > 1 {
		return "+" + text
	}
	return text
}
