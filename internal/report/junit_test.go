package report_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/report/document"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// suite is what a reader of the form takes from it.
type suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Cases    []struct {
		Name    string `xml:"name,attr"`
		Class   string `xml:"classname,attr"`
		Failure *struct {
			Message string `xml:"message,attr"`
		} `xml:"failure"`
		Error *struct {
			Message string `xml:"message,attr"`
		} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
		Out     string    `xml:"system-out"`
	} `xml:"testcase"`
}

func junitText(t testing.TB, all ...report.Ran) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.JUnitOf(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readSuites(t interface{ Fatal(...any) }, text []byte) []suite {
	var read struct {
		Suites []suite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, s := range read.Suites {
		failures, errors, skipped := 0, 0, 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				errors++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		if s.Tests != len(s.Cases) || s.Failures != failures || s.Errors != errors || s.Skipped != skipped {
			t.Fatal("the counts of a suite are not those of its cases:", string(text))
		}
	}
	return read.Suites
}

func TestJUnitHoldsToTheSchema(t *testing.T) {
	xmllint := testreq.Program(t, "xmllint")
	going := smallRun()
	going.Summary, going.Going = result.Summary{}, time.Minute
	for name, ran := range map[string]report.Ran{
		"failed": {Run: smallRun()}, "rehearsal": {Run: rehearsalRun()}, "hostile": {Run: hostileRun()}, "going": {Run: going},
		"empty": {Run: &document.Run{}}, "not run": {NotRun: report.NotRun{Scenario: "a\x00<b>&\"", Error: "]]>\x1b[31m"}},
	} {
		path := filepath.Join(t.TempDir(), "junit.xml")
		if err := os.WriteFile(path, junitText(t, ran, ran), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", filepath.Join("testdata", "junit.xsd"), path).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestJUnitEscapesHostileNames(t *testing.T) {
	text := junitText(t, report.Ran{Run: hostileRun()})
	readSuites(t, text)
	for _, bad := range []string{"<script", "<img", "]]>", "\x1b", "\u202e", "\x00"} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("%q is in the form", bad)
		}
	}
	// A name is one line and bounded, whatever it was.
	for _, c := range readSuites(t, text)[0].Cases {
		if strings.ContainsAny(c.Name+c.Class, "\n\r\t") {
			t.Errorf("%q is more than one line", c.Name)
		}
	}
}

// TestJUnitSaysTheVerdict: counting failures and errors gives the verdict of the run.
func TestJUnitSaysTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := &document.Run{}
		run.Summary = randomSummary(t)
		var b bytes.Buffer
		if err := report.JUnit(&b, run); err != nil {
			t.Fatal(err)
		}
		s := readSuites(t, b.Bytes())[0]
		got := result.Pass
		switch {
		case s.Failures > 0:
			got = result.Failed
		case s.Errors > 0:
			got = result.Undecided
		}
		if got != run.Summary.Verdict {
			t.Fatalf("%d failures and %d errors say %s, the run %s:\n%s", s.Failures, s.Errors, got, run.Summary.Verdict, b.Bytes())
		}
		seen := map[string]bool{}
		for _, c := range s.Cases {
			if seen[c.Class+"\x00"+c.Name] {
				t.Fatalf("two cases are %s %s", c.Class, c.Name)
			}
			seen[c.Class+"\x00"+c.Name] = true
		}
	})
}

// randomSummary draws a summary whose verdict follows from its parts as evaluation derives it, or from none of them.
func randomSummary(t *rapid.T) result.Summary {
	s := result.Summary{Verdict: result.Pass, Reason: "Because.", Ended: result.EndedCompleted}
	failed, undecided := false, false
	e := result.Evaluated{Name: "r", Title: "R"}
	for range rapid.IntRange(0, 3).Draw(t, "checks") {
		c := result.Check{Text: rapid.SampledFrom([]string{"p99 < 20ms", "p99 < 20ms #2"}).Draw(t, "text"), Passed: rapid.Bool().Draw(t, "passed")}
		if !c.Passed && rapid.Bool().Draw(t, "undecided") {
			c.Reason = "too few values"
		}
		failed, undecided = failed || !c.Passed && c.Reason == "", undecided || c.Reason != ""
		e.Checks = append(e.Checks, c)
	}
	if rapid.Bool().Draw(t, "metric") {
		pass := rapid.Bool().Draw(t, "metric passed")
		failed = failed || !pass
		e.Metrics = append(e.Metrics, result.Metric{Name: "AnyFail", Pass: &pass})
	}
	s.Results = []result.Evaluated{e}
	var all []finding.Finding
	for range rapid.IntRange(0, 3).Draw(t, "findings") {
		f := finding.Finding{Code: "code", Claim: "A claim.",
			Severity: rapid.SampledFrom([]finding.Severity{finding.Info, finding.Warning, finding.Undecided, finding.Fail}).Draw(t, "severity")}
		failed, undecided = failed || f.Severity == finding.Fail, undecided || f.Severity == finding.Undecided
		all = append(all, f)
	}
	s.Findings = all
	switch {
	case rapid.Bool().Draw(t, "incomplete"):
		s.Ended, s.Verdict = result.EndedFailed, result.Undecided
	case failed:
		s.Verdict = result.Failed
	case undecided || rapid.Bool().Draw(t, "undecided by itself"):
		s.Verdict = result.Undecided
	}
	return s
}

func TestJUnitTellsOfNoRun(t *testing.T) {
	text := junitText(t, report.Ran{Run: smallRun()},
		report.Ran{NotRun: report.NotRun{Scenario: "oltp", Error: "target \"lab\": no route\nhint"}})
	suites := readSuites(t, text)
	if len(suites) != 2 || suites[1].Name != "oltp" || suites[1].Errors != 1 ||
		suites[1].Cases[0].Error.Message != `target "lab": no route hint` && suites[1].Cases[0].Error.Message != `target "lab": no route` {
		t.Errorf("got:\n%s", text)
	}
}
