package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
)

// JUnit is the format for continuous integration. It has no standard; this one keeps to the common subset of the schemas of Ant
// and Jenkins (testdata/junit.xsd). A suite is a run, a test case is a threshold, a result or a finding:
//
//	not met ──▶ failure · could not be decided ──▶ error · without data and threshold ──▶ skipped · else passed
//
// The first case of each suite is the run itself. It fails if the verdict is a failure that no other case reports: a suite has no
// failure and no error if and only if the verdict of the run is PASS or COMPLETED.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	ID         int             `xml:"id,attr"`
	Name       string          `xml:"name,attr"`
	Package    string          `xml:"package,attr"`
	Timestamp  string          `xml:"timestamp,attr"` // UTC, without a zone, as the schemas require
	Hostname   string          `xml:"hostname,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Seconds    junitSeconds    `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out"`
	Err        string          `xml:"system-err"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Seconds junitSeconds `xml:"time,attr"`
	Skipped *junitSkip   `xml:"skipped"`
	Error   *junitFault  `xml:"error"`
	Failure *junitFault  `xml:"failure"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitSkip struct {
	Message string `xml:"message,attr"`
}

type junitFault struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitSeconds prints with milliseconds and without an exponent, which xs:decimal does not allow.
type junitSeconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s junitSeconds) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', 3, 64), nil
}

// Ran is the outcome of one scenario of a queue: a run, or the error that prevented it.
type Ran struct {
	Run *document.Run // nil: it did not run, and the other fields give the reason
	NotRun
}

// NotRun is the reason for a missing run: faulty scenario files, or an unavailable target.
type NotRun struct {
	Scenario string
	At       time.Time
	Error    string
}

// JUnit writes the suite of one run.
func JUnit(w io.Writer, run *document.Run) error { return JUnitOf(w, []Ran{{Run: run}}) }

// JUnitOf writes a suite for each scenario of a queue, in order.
func JUnitOf(w io.Writer, all []Ran) error {
	out := junitSuites{Suites: []junitSuite{}}
	for i, one := range all {
		s := notRunSuite(page.Readable(one.NotRun))
		if one.Run != nil {
			s = runSuite(page.Readable(document.Build(one.Run)), one.Run)
		}
		s.ID = i
		s.count()
		out.Suites = append(out.Suites, s)
	}
	return out.write(w)
}

func (out *junitSuites) write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write report as junit: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", " ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("write report as junit: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write report as junit: %w", err)
	}
	return nil
}

func runSuite(d *document.Document, run *document.Run) junitSuite {
	s := newSuite(d.Scenario.Name, d.Created)
	s.Hostname = cmp.Or(draw.Clean(run.Manifest.Environment["host"]), s.Hostname)
	s.Seconds = junitSeconds(d.DurationNanos)
	s.Properties = suiteProperties(d)
	s.Out = strings.Join(slices.Concat(d.Reduced, d.Simulated, d.Caveats), "\n")
	s.Cases = []junitCase{{Name: "run", Class: s.Package, Seconds: s.Seconds}}
	for i := range d.Results {
		s.addResult(&d.Results[i])
	}
	for _, f := range d.Findings {
		s.Cases = append(s.Cases, findingCase(s.Package, f))
	}
	if d.Ended != result.EndedCompleted {
		s.doubt(d.Ended)
	}
	s.judge(d)
	s.distinguish()
	return s
}

func newSuite(scenario string, at time.Time) junitSuite {
	name := cmp.Or(scenario, "scenario")
	return junitSuite{Name: name, Package: "bragg." + name, Hostname: "localhost", Properties: []junitProperty{},
		Timestamp: at.UTC().Format("2006-01-02T15:04:05")}
}

func notRunSuite(n NotRun) junitSuite {
	s := newSuite(n.Scenario, n.At)
	line, _, _ := strings.Cut(n.Error, "\n")
	s.Cases = []junitCase{{Name: "run", Class: s.Package, Error: &junitFault{Type: "not-run", Message: line, Text: n.Error}}}
	return s
}

func suiteProperties(d *document.Document) []junitProperty {
	list := []junitProperty{{"run", d.Run}, {"verdict", string(d.Verdict)}, {"reason", d.Reason}, {"validity", string(d.Validity)},
		{"validity_reason", d.ValidityReason}, {"ended", d.Ended},
		{"target", d.Target.Name}, {"provider", d.Target.Provider}, {"seed", strconv.FormatUint(d.Seed, 10)},
		{"rehearsal", strconv.FormatBool(d.Rehearsal != nil)}}
	if d.Label != "" {
		list = append(list, junitProperty{"label", d.Label})
	}
	return list
}

// addResult adds a case for each threshold of a result, or a single case if it has none.
func (s *junitSuite) addResult(r *document.Result) {
	class := s.Package + "." + r.Name
	before := len(s.Cases)
	for _, c := range r.Checks {
		one := junitCase{Name: c.Text, Class: class}
		if scope := c.Window + c.Event; scope != "" {
			one.Name += " (" + scope + ")"
		}
		switch text := document.CheckText(c); {
		case c.Reason != "":
			one.Error = &junitFault{Type: "undecided", Message: "undecided: " + c.Reason, Text: text}
		case !c.Passed:
			one.Failure = &junitFault{Type: "expectation", Message: document.MeasuredText(c), Text: text}
		default:
			one.Out = text
		}
		s.Cases = append(s.Cases, one)
	}
	for _, m := range r.Metrics {
		if m.Pass == nil {
			continue
		}
		one := junitCase{Name: document.MetricLabel(m), Class: class}
		if !*m.Pass {
			value := "measured " + draw.Quantity(float64(m.Value), m.Unit)
			one.Failure = &junitFault{Type: "metric", Message: value, Text: document.MetricLabel(m) + " of " + r.Heading() + " failed: " + value}
		}
		s.Cases = append(s.Cases, one)
	}
	if len(s.Cases) > before {
		return
	}
	one := junitCase{Name: r.Heading(), Class: class}
	if r.Missing != "" {
		one.Skipped = &junitSkip{Message: r.Missing}
	}
	s.Cases = append(s.Cases, one)
}

func findingCase(suite string, f finding.Finding) junitCase {
	one := junitCase{Name: f.Code, Class: suite + ".findings"}
	if f.Subject != "" {
		one.Name += ": " + f.Subject
	}
	text := strings.Join(slices.Concat([]string{string(f.Severity) + ": " + f.Claim}, f.Evidence, f.Caveats), "\n")
	if f.Advice != "" {
		text += "\n" + f.Advice
	}
	switch f.Severity {
	case finding.Fail:
		one.Failure = &junitFault{Type: f.Code, Message: f.Claim, Text: text}
	case finding.Undecided:
		one.Error = &junitFault{Type: f.Code, Message: f.Claim, Text: text}
	default:
		one.Out = text // JUnit has no warnings: the text goes to a passed case
	}
	return one
}

// doubt turns failures of an incomplete run into errors, because they are undecided.
func (s *junitSuite) doubt(ended string) {
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Failure != nil {
			c.Error = &junitFault{Type: "undecided", Text: c.Failure.Text,
				Message: "the run did not complete (" + ended + "), so this decides nothing: " + c.Failure.Message}
			c.Failure = nil
		}
	}
}

// judge gives the first case, the run, the verdict if no other case reports it.
func (s *junitSuite) judge(d *document.Document) {
	s.count()
	fault := &junitFault{Type: d.Ended, Message: d.Reason, Text: d.Reason}
	switch {
	case d.Verdict == result.Failed && s.Failures == 0:
		s.Cases[0].Failure = fault
	case d.Verdict != result.Failed && !d.Verdict.Good() && (s.Errors == 0 || d.Ended != result.EndedCompleted):
		s.Cases[0].Error = fault
	default:
		s.Cases[0].Out = d.Headline() + ": " + d.Reason
	}
}

// distinguish numbers cases of the same name, because readers of the format would merge them.
func (s *junitSuite) distinguish() {
	seen := map[[2]string]bool{}
	for i := range s.Cases {
		c := &s.Cases[i]
		name := c.Name
		for n := 2; seen[[2]string{c.Class, c.Name}]; n++ {
			c.Name = fmt.Sprintf("%s #%d", name, n)
		}
		seen[[2]string{c.Class, c.Name}] = true
	}
}

func (s *junitSuite) count() {
	s.Tests, s.Failures, s.Errors, s.Skipped = len(s.Cases), 0, 0, 0
	for i := range s.Cases {
		switch c := &s.Cases[i]; {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}
