package report

import (
	"io"
	"time"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/page"
)

// printGate prints the outcome of a gate and of each of its conditions.
func printGate(p *textPage, g *compare.Gate) {
	p.line("")
	paint := map[compare.Outcome]func(string) string{compare.Passed: p.Good, compare.Failed: p.Bad, compare.Undecided: p.Doubt}
	for _, check := range g.Checks {
		p.text("", gateText(&check), paint[check.Outcome])
	}
}

// gateText is a check in one line: "failed  p99 > 10%: Read Latency, service time, p99: +31.2 % (+28.1 to +34.4 %)."
func gateText(check *compare.GateCheck) string {
	text := "fail on " + check.Condition + ": " + string(check.Outcome) + ". "
	if check.Number != "" {
		text += check.Number + ": "
	}
	return text + check.Reason
}

// GateJUnit writes the outcome of a gate as one suite with a case for each check: failed is a failure, undecided an error with its
// reason.
func GateJUnit(w io.Writer, c *compare.Comparison, at time.Time) error {
	c = page.Readable(c)
	s := newSuite(c.Runs[0].Scenario, at)
	s.Name += ": comparison"
	s.Package += ".comparison"
	s.Out = c.Headline
	s.Properties = append(s.Properties, junitProperty{"outcome", string(c.Gate.Outcome)})
	for _, r := range c.Runs {
		s.Properties = append(s.Properties, junitProperty{r.Name, r.Run})
	}
	for i := range c.Gate.Checks {
		check := &c.Gate.Checks[i]
		one := junitCase{Name: check.Condition, Class: s.Package}
		if check.Number != "" {
			one.Name += ": " + check.Number
		}
		switch check.Outcome {
		case compare.Failed:
			one.Failure = &junitFault{Type: "expectation", Message: check.Reason, Text: gateText(check)}
		case compare.Undecided:
			one.Error = &junitFault{Type: "undecided", Message: "undecided: " + check.Reason, Text: gateText(check)}
		default:
			one.Out = gateText(check)
		}
		s.Cases = append(s.Cases, one)
	}
	s.distinguish()
	s.count()
	out := junitSuites{Suites: []junitSuite{s}}
	return out.write(w)
}
