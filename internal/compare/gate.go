package compare

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Condition is a change of a number that fails a gate: "p99 > 10%", "iops < -5%".
type Condition struct {
	Text           string
	metric         string // "iops", "bandwidth", "completion", or a statistic of latencies
	result, window string // names; "" is any result, and the whole of it
	above          bool
	limit          float64 // relative change
}

var conditionText = regexp.MustCompile(`^\s*([\w.]+)(?:\s+of\s+"([^"]+)")?(?:\s+in\s+"([^"]+)")?\s*([<>])\s*([-+]?[\d.]+)\s*%\s*$`)

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
		return refuse("not of the form NUMBER > PERCENT", `for example 'p99 > 10%', 'iops < -5%', 'p99 of "Read Latency" in "after nodes.PowerOff" > 20%'`)
	}
	c := Condition{Text: strings.TrimSpace(text), metric: strings.ToLower(m[1]), result: m[2], window: m[3], above: m[4] == ">"}
	if _, known := gateMetrics[c.metric]; !known {
		return refuse("unknown number "+strconv.Quote(m[1]), "numbers are iops, bandwidth, completion, and mean, median, p95, p99, p99.9 of latency")
	}
	percent, err := strconv.ParseFloat(m[5], 64)
	if err != nil || percent <= -100 {
		return refuse("invalid percentage "+strconv.Quote(m[5]), "a change in per cent of A, more than -100")
	}
	c.limit = percent / 100
	return c, nil
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
	Low       result.Number `json:"low"`
	High      result.Number `json:"high"`
	Outcome   Outcome       `json:"outcome"`
	Reason    string        `json:"reason"` // one sentence
}

// Judge evaluates the conditions of a gate on two sets.
func (c *Comparison) Judge(conditions []Condition) {
	type pair struct {
		condition *Condition
		number    *Number
	}
	var pairs []pair
	g := &Gate{Outcome: Passed, Checks: []GateCheck{}}
	for i := range conditions {
		before := len(pairs)
		for j := range c.Sets.measured {
			if n := &c.Sets.measured[j]; !n.absent() && c.matches(&conditions[i], n) {
				pairs = append(pairs, pair{&conditions[i], n})
			}
		}
		if len(pairs) == before {
			g.Checks = append(g.Checks, GateCheck{Condition: conditions[i].Text, Ratio: unknown, Low: unknown, High: unknown, Outcome: Undecided,
				Reason: "Neither A nor B has such a number."})
		}
	}
	doubt := invalidRuns(c.Runs)
	for _, p := range pairs {
		check := p.condition.check(p.number, 1-stat.Level/float64(len(pairs)))
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
	want := gateMetrics[of.metric]
	if n.Metric != want.metric || n.prefill || !strings.EqualFold(n.Window, of.window) ||
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

func (of *Condition) check(n *Number, confidence float64) GateCheck {
	check := GateCheck{Condition: of.Text, Number: n.Label() + n.when(), Ratio: unknown, Low: unknown, High: unknown, Outcome: Undecided}
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
	limit := 1 + of.limit
	switch {
	case of.above && low > limit || !of.above && high < limit:
		check.Outcome = Failed
	case of.above && high <= limit || !of.above && low >= limit:
		check.Outcome = Passed
	}
	check.Reason = fmt.Sprintf("%s (%s to %s)", signedChange(r.Value), signedChange(low), signedChange(high))
	if check.Outcome == Undecided {
		check.Reason += ": the limit is within the interval; more runs narrow it"
	}
	check.Reason += "."
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
