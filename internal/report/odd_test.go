package report_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
)

// TestOddNumbers (of those that JSON can express): records may be damaged, or of another program. Whatever their numbers are, no form of the report panics or shows NaN
// or an infinity as a number.
func TestOddNumbers(t *testing.T) {
	const seed = 5
	odd := []float64{math.NaN(), -1, 0, 1e-320, 1e300, math.MaxInt64}
	for round := range 12 {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		run := exampleRun()
		run.Summary.Impacts = []result.Impact{{Event: "E", Kind: result.ImpactNodeOff, Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP",
			Quantity: "iops", LivedOn: &result.ImpactScore{Count: 1}, TakenAway: &result.ImpactScore{}}}}}
		shake(reflect.ValueOf(&run.Summary).Elem(), func(v reflect.Value) {
			if random.IntN(4) > 0 {
				return
			}
			n := odd[random.IntN(len(odd))]
			switch v.Kind() {
			case reflect.Float64: // only a Number can be missing
				if !math.IsNaN(n) || v.Type() == reflect.TypeFor[result.Number]() {
					v.SetFloat(n)
				}
			case reflect.Int64, reflect.Int:
				if !math.IsNaN(n) {
					v.SetInt(int64(max(-1e15, min(1e15, n))))
				}
			case reflect.Uint64:
				if n >= 0 {
					v.SetUint(uint64(min(1e15, n)))
				}
			}
		})
		t.Run(fmt.Sprintf("seed %d.%d", seed, round), func(t *testing.T) { showAll(t, run) })
	}
}

// TestOddRuns: runs without what a report usually has.
func TestOddRuns(t *testing.T) {
	for name, change := range map[string]func(*result.Summary){
		"nothing":          func(s *result.Summary) { *s = result.Summary{} },
		"no results":       func(s *result.Summary) { s.Results = nil },
		"results, no data": func(s *result.Summary) { s.Results = []result.Evaluated{{Name: "a"}, {Title: "b", Type: "latency"}} },
		"no windows":       func(s *result.Summary) { s.Windows = nil },
		"failed in setup": func(s *result.Summary) {
			*s = result.Summary{Ended: result.EndedFailed, Verdict: result.Undecided, Reason: "No disk."}
		},
		"words of later":    func(s *result.Summary) { s.Verdict, s.Validity, s.Ended = "MAYBE", "DOUBTFUL", "suspended" },
		"only a validity":   func(s *result.Summary) { *s = result.Summary{Validity: result.Valid} },
		"empty impact":      func(s *result.Summary) { s.Impacts = []result.Impact{{}, {Loads: []result.ImpactLoad{{}}}} },
		"impact of no load": func(s *result.Summary) { s.Impacts = []result.Impact{{Kind: "later", Event: "E"}} },
	} {
		t.Run(name, func(t *testing.T) {
			run := exampleRun()
			change(&run.Summary)
			showAll(t, run)
		})
	}
}

// TestUnknownVerdictIsNoSuccess: a word of a later version decides nothing.
func TestUnknownVerdictIsNoSuccess(t *testing.T) {
	run := rehearsalRun()
	run.Summary.Verdict = "MAYBE"
	var out bytes.Buffer
	if err := report.JUnit(&out, run); err != nil || !strings.Contains(out.String(), "<error") || run.Summary.ExitCode() != 3 {
		t.Errorf("exit code %d (%v):\n%s", run.Summary.ExitCode(), err, out.String())
	}
}

var notANumber = regexp.MustCompile(`[^\w"]([+-]?Inf|NaN)\b`)

func showAll(t *testing.T, run *document.Run) {
	t.Helper()
	for name, write := range map[string]func(io.Writer) error{
		"brief": func(w io.Writer) error { return report.Brief(w, run, 100, false) }, "terminal": func(w io.Writer) error { return report.Terminal(w, run, 60, true) },
		"html": func(w io.Writer) error { return page.HTML(w, run) }, "json": func(w io.Writer) error { return document.JSON(w, run) },
		"csv": func(w io.Writer) error { return document.CSV(w, run) }, "junit": func(w io.Writer) error { return report.JUnit(w, run) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := out.String()
		if at := strings.Index(text, "<script>"); name == "html" && at > 0 {
			text = text[:at]
		}
		if m := notANumber.FindStringIndex(text); m != nil {
			t.Errorf("%s: …%s…", name, text[max(0, m[0]-80):min(len(text), m[1]+20)])
		}
	}
}

// shake calls change for every number in v.
func shake(v reflect.Value, change func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			shake(v.Elem(), change)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				shake(v.Field(i), change)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			shake(v.Index(i), change)
		}
	default:
		if v.CanSet() {
			change(v)
		}
	}
}
