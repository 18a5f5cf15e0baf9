package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// manyFindings is a rehearsal with findings that belong together and some that do not.
func manyFindings() *document.Run {
	run := rehearsalRun()
	list := []finding.Finding{
		{Code: "few-samples", Severity: finding.Info, Subject: "Read", Claim: "Read has too few read operations (6,553) for a stable p99.9: 6 lie beyond it."},
		{Code: "few-samples", Severity: finding.Info, Subject: "Write", Claim: "Write has too few write operations (5,851) for a stable p99.9: 5 lie beyond it."},
	}
	for i, stall := range []string{"505 ms (4.2 % of its runtime), longest 93 ms at 0:09 on vm-4.",
		"1.01 s (8.25 % of its runtime), longest 202 ms at 0:20 on vm-1.", "769 ms (6.39 % of its runtime), longest 132 ms at 0:17 on vm-2."} {
		name := fmt.Sprintf("Load %c", 'A'+i)
		list = append(list, finding.Finding{Code: "generator-stalled", Severity: finding.Warning, Subject: name,
			Claim: "The load generator of " + name + " stalled for " + stall})
	}
	run.Summary.Findings = list
	return run
}

// TestBriefIsBrief: the short form fits its width where nothing needs stacking, and stays on a screen.
func TestBriefIsBrief(t *testing.T) {
	for name, run := range map[string]*document.Run{"full": smallRun(), "rehearsal": manyFindings(), "hostile": hostileRun()} {
		for _, width := range []int{20, 60, 100, 200} {
			var b bytes.Buffer
			if err := report.Brief(&b, run, width, false); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(b.String(), "\x00\x1b\u202e") {
				t.Errorf("%s at %d: control characters in\n%q", name, width, b.String())
			}
			if n := strings.Count(b.String(), "\n"); width >= 100 && name != "hostile" && n > 40 {
				t.Errorf("%s at %d: %d lines", name, width, n)
			}
		}
	}
}

// TestFoldedFindingsAreToldApart: findings about one workload differ in direction or start; their shared line names both.
func TestFoldedFindingsAreToldApart(t *testing.T) {
	few := func(subject, claim string) finding.Finding {
		return finding.Finding{Code: "few-samples", Severity: finding.Info, Subject: subject, Claim: claim + " for a stable p99.9: 7 lie beyond it."}
	}
	reads := few("OLTP Warm-up", "OLTP Warm-up has too few read operations (7,113)")
	cases := []struct {
		more []finding.Finding
		want string
	}{
		{[]finding.Finding{few("OLTP Warm-up", "OLTP Warm-up has too few write operations (7,002)")}, "Also: OLTP Warm-up writes. ["},
		{[]finding.Finding{few("OLTP Warm-up", "OLTP Warm-up (start 2) has too few write operations (7,002)"), few("DSS", "DSS has too few read operations (12)")},
			"Also: OLTP Warm-up (start 2) writes, DSS reads. ["},
		{[]finding.Finding{few("DSS", "DSS has too few write operations (12)")}, "Also: DSS. ["},
		{[]finding.Finding{few("OLTP Warm-up", "OLTP Warm-up has too few add operations (12)")}, "Also: OLTP Warm-up add. ["},
		{[]finding.Finding{few("OLTP Warm-up", "OLTP Warm-up has too few reads (12)")}, "Also: OLTP Warm-up reads. ["},
	}
	for _, c := range cases {
		run := smallRun()
		run.Summary.Findings = append([]finding.Finding{reads}, c.more...)
		var b bytes.Buffer
		if err := report.Brief(&b, run, 500, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "7 lie beyond it. "+c.want) {
			t.Errorf("want %q in\n%s", c.want, b.String())
		}
	}
}

// TestBriefCountsWarnings: the number beside the reason of the validity is that of the lines, with the reason itself, which names all
// subjects of its kind.
func TestBriefCountsWarnings(t *testing.T) {
	run := rehearsalRun()
	late := func(subject string) finding.Finding {
		return finding.Finding{Code: "start-skew", Severity: finding.Warning, Subject: subject, Claim: subject + " was late."}
	}
	run.Summary.Findings = append(run.Summary.Findings, late("A"), late("B"), finding.Finding{Code: "cache-reads", Severity: finding.Warning, Claim: "Cached."})
	run.Summary.Validity, run.Summary.ValidityReason = result.ValidityOf(result.EndedCompleted, run.Summary.Findings)
	var b bytes.Buffer
	if err := report.Brief(&b, run, 500, false); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "QUALIFIED  A was late. Also: B. (1 of 2 warnings)\n") || strings.Count(text, "warning: ") != 1 {
		t.Errorf("%s", text)
	}
}

// TestBriefOfAnInterruptedRun: what else is said of a run that did not complete is not counted but printed.
func TestBriefOfAnInterruptedRun(t *testing.T) {
	run := smallRun()
	run.Summary.Findings = []finding.Finding{{Code: "run-incomplete", Severity: finding.Undecided, Claim: "The run was interrupted after 5 s."},
		{Code: "run-incomplete", Severity: finding.Undecided, Subject: "OLTP", Claim: "OLTP failed: no space left."}}
	run.Summary.Validity, run.Summary.ValidityReason = result.ValidityOf(result.EndedInterrupted, run.Summary.Findings)
	var b bytes.Buffer
	if err := report.Brief(&b, run, 500, false); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "interrupted after 5 s.\n") || !strings.Contains(text, "undecided: OLTP failed: no space left. [run-incomplete]\n") {
		t.Errorf("%s", text)
	}
}

// TestEventsOnce: the annotation of a start or an end is not listed beside the event itself; other annotations are.
func TestEventsOnce(t *testing.T) {
	run := smallRun()
	run.Events = append(run.Events, []interval.Event{
		{Kind: interval.EventAnnotation, Workload: "OLTP", Message: "OLTP: starting workload"},
		{Kind: interval.EventWorkloadStart, Workload: "OLTP"},
		{Kind: interval.EventAnnotation, Workload: "OLTP", Message: "OLTP: finished workload"},
		{Kind: interval.EventAnnotation, Workload: "OLTP", Message: "the cache is warm"},
	}...)
	var b bytes.Buffer
	if err := report.Terminal(&b, run, 100, false); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "starting workload") || strings.Contains(text, "finished workload") {
		t.Error("a start or an end is listed twice")
	}
	if !strings.Contains(text, "workload started · OLTP") || !strings.Contains(text, "the cache is warm") {
		t.Errorf("an event is not listed:\n%s", text)
	}
}

// TestBriefClipsNames: a name of 300 characters does not push the answers off the first screen.
func TestBriefClipsNames(t *testing.T) {
	run := manyFindings()
	long := strings.Repeat("n", 300)
	run.Manifest.Scenario.DisplayName = long
	for i := range run.Summary.Results {
		run.Summary.Results[i].Title = long + run.Summary.Results[i].Title
	}
	var out strings.Builder
	if err := report.Brief(&out, run, 100, false); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(out.String()), ""); strings.Contains(text, strings.Repeat("n", briefNameMax+1)) ||
		!strings.Contains(text, strings.Repeat("n", briefNameMax/2)+"…") {
		t.Errorf("names are not clipped:\n%s", out.String())
	}
}

const briefNameMax = 60

// TestLongNamesOfWorkloads: names that begin alike stay apart, and a long one does not narrow the text beside it.
func TestLongNamesOfWorkloads(t *testing.T) {
	run := smallRun()
	text, err := json.Marshal(run.Summary)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("Reads of the order processing database ", 3) + "of tenant blue"
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"OLTP"`, `"`+name+`"`)), &run.Summary); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.Brief(&b, run, 100, false); err != nil {
		t.Fatal(err)
	}
	short := textio.ClipMiddle(name, 60)
	if !strings.HasSuffix(short, "of tenant blue") || !strings.Contains(b.String(), "\n"+short+"\n              engine native") {
		t.Errorf("%s", b.String())
	}
}

// TestBriefOfManyGauges: every database has half a dozen gauges, and the summary has one screen.
func TestBriefOfManyGauges(t *testing.T) {
	for n, want := range map[int]string{16: "", 17: "\nHTML          17 gauges of loads\n"} {
		run := smallRun()
		for i := range n {
			run.Summary.Results = append(run.Summary.Results, result.Evaluated{Name: fmt.Sprintf("gauge %d", i), Type: "metric", Gauge: true,
				Stats: []result.Stats{{Series: "x", Count: 1}}})
		}
		var b bytes.Buffer
		if err := report.Brief(&b, run, 100, false); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "gauge 0") != (want == "") || !strings.Contains(b.String(), want) {
			t.Errorf("%d gauges:\n%s", n, b.String())
		}
	}
}
