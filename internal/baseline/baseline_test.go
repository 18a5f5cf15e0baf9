package baseline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/result"
)

// pinned is a baseline of runs whose p99 and IOPS vary by spread around 1 ms and 1000.
func pinned(random *rand.Rand, runs int, spread float64) *baseline.Baseline {
	b := &baseline.Baseline{}
	for i := range runs {
		vary := func(v float64) result.Number { return result.Number(v * math.Exp(spread*random.NormFloat64())) }
		b.Runs = append(b.Runs, baseline.Run{Run: fmt.Sprint(i), Results: []baseline.Result{
			{Name: "Latency", Stats: []result.Stats{{Series: "all", Kind: "service", Distribution: result.Distribution{P99: vary(1e6), AtLeast: result.Bounds{"p999"}}}}},
			{Name: "IOPS", Stats: []result.Stats{{Series: "all", Distribution: result.Distribution{Mean: vary(1000)}}}}}})
	}
	return b
}

var (
	latency = baseline.Number{Result: "Latency", Series: "all", Kind: "service", Statistic: "p99"}
	rate    = baseline.Number{Result: "IOPS", Series: "all", Statistic: "mean", MoreIsBetter: true}
)

// TestErrorRates: a run that is exactly as much worse as the tolerance allows passes in at most 5 % of cases and fails in at most 5 %;
// one that is no worse seldom fails, and one that is far worse fails.
func TestErrorRates(t *testing.T) {
	const seed, cases, spread, tolerance = 61, 400, 0.02, 0.1
	random := rand.New(rand.NewPCG(seed, 0))
	for _, runs := range []int{3, 5, 10} {
		for _, of := range []baseline.Number{latency, rate} {
			count := map[string]int{}
			for range cases {
				l, reason := pinned(random, runs, spread).Limits(of, tolerance, 1)
				if reason != "" {
					t.Fatal(reason)
				}
				level, worse := 1e6, 1+tolerance
				if of.MoreIsBetter {
					level, worse = 1000, 1-tolerance
				}
				for name, factor := range map[string]float64{"equal": 1, "limit": worse, "far": worse * worse * worse * worse * worse} {
					v := level * factor * math.Exp(spread*random.NormFloat64())
					switch passed, failed := v <= l.Pass, v > l.Fail; {
					case passed && !of.MoreIsBetter, of.MoreIsBetter && v >= l.Pass:
						count[name+" passed"]++
					case failed && !of.MoreIsBetter, of.MoreIsBetter && v < l.Fail:
						count[name+" failed"]++
					}
				}
			}
			t.Logf("%d runs, %s: %v", runs, of.Result, count)
			if count["limit passed"] > cases*5/100 || count["limit failed"] > cases*5/100 || count["equal failed"] > 1 || count["far passed"] > 0 {
				t.Errorf("seed %d, %d runs, %s: %v", seed, runs, of.Result, count)
			}
			if runs >= 5 && (count["equal passed"] < cases/2 || count["far failed"] < cases*95/100) {
				t.Errorf("seed %d, %d runs, %s decide too seldom: %v", seed, runs, of.Result, count)
			}
		}
	}
}

func TestLimitsThatAreMissing(t *testing.T) {
	b := pinned(rand.New(rand.NewPCG(62, 0)), 3, 0.02)
	for want, of := range map[string]baseline.Number{
		"only a lower bound": {Result: "Latency", Series: "all", Kind: "service", Statistic: "p99.9"}, "does not have the result": {Result: "Other"},
		"does not have the series or window": {Result: "IOPS", Series: "VM-1", Statistic: "mean"}, "has no such value": {Result: "IOPS", Series: "all", Statistic: "median"},
	} {
		if _, reason := b.Limits(of, 0.1, 1); !strings.Contains(reason, want) {
			t.Errorf("%+v: %q", of, reason)
		}
	}
	l, _ := b.Limits(latency, 0.1, 1)
	if text := l.Change(1.2e6); !strings.HasPrefix(text, "+1") && !strings.HasPrefix(text, "+2") || !strings.HasSuffix(text, "against the baseline of 3 runs") {
		t.Error(text)
	}
	if text := l.Needs(1.06e6); !strings.Contains(text, "pinned runs") {
		t.Error(text)
	}
	if text := l.Needs(1.0999e6); !strings.Contains(text, "no number of pinned runs") {
		t.Error(text)
	}
}

// bundle writes a sealed run.
func bundle(t *testing.T, runs, id string, change func(m *result.Manifest, s *result.Summary)) {
	t.Helper()
	m := result.Manifest{Run: id, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Scenario: result.ScenarioInfo{Name: "oltp", Hash: "0123456789abcdef", Variables: map[string]string{"disks": "4"}}, Target: result.TargetInfo{Provider: "fake", Name: "fake"}}
	s := result.Summary{Verdict: result.Pass, Validity: result.Valid, Ended: result.EndedCompleted, Results: []result.Evaluated{{Name: "IOPS", Type: "iops",
		Stats: []result.Stats{{Series: "all", Distribution: result.Distribution{Mean: 1000}}}}}}
	if change != nil {
		change(&m, &s)
	}
	w, err := result.Create(filepath.Join(runs, id), m)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(s); err != nil {
		t.Fatal(err)
	}
}

func TestPins(t *testing.T) {
	runs := t.TempDir()
	for _, id := range []string{"a", "b", "c"} {
		bundle(t, runs, id, nil)
	}
	bundle(t, runs, "other", func(m *result.Manifest, _ *result.Summary) { m.Scenario.Variables = map[string]string{"disks": "8"} })
	bundle(t, runs, "invalid", func(_ *result.Manifest, s *result.Summary) { s.Validity = result.Invalid })
	bundle(t, runs, "failed", func(_ *result.Manifest, s *result.Summary) { s.Ended = result.EndedFailed })
	if b := baseline.Of(runs, "oltp"); !strings.Contains(b.Missing, "no baseline is pinned for scenario oltp") {
		t.Errorf("%+v", b)
	}
	for want, ids := range map[string][]string{"is INVALID": {"invalid"}, "did not complete": {"failed"}, "variable disks is 8 and was 4": {"a", "other"}, "no such file": {"none"}} {
		if _, err := baseline.Set(runs, ids, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", ids, err)
		}
	}
	if scenario, err := baseline.Set(runs, []string{"a", "b", "c", "b"}, time.Now()); scenario != "oltp" || err != nil {
		t.Fatal(scenario, err)
	}
	pins, err := baseline.Read(runs)
	pin := pins.Baselines["oltp"]
	if err != nil || pins.Of("b") != "oltp" || pins.Of("other") != "" || !slices.Equal(pin.Names(), []string{"a", "b", "c"}) {
		t.Errorf("%+v, %v", pins, err)
	}
	b := baseline.Of(runs, "oltp")
	if b.Missing != "" || len(b.Runs) != 3 || b.Doubt(b.Runs[0].Factors) != "" {
		t.Errorf("%+v %s", b, b.Doubt(b.Runs[0].Factors))
	}
	other := slices.Clone(b.Runs[0].Factors)
	other[1].Value = "8"
	if doubt := b.Doubt(other); doubt != "the run is not comparable with the baseline: variable disks is 8 and was 4" {
		t.Error(doubt)
	}
	if doubt := b.Doubt(append(b.Runs[0].Factors, baseline.Factor{Name: "engine of W", Value: "fio"})); !strings.HasSuffix(doubt, "engine of W is fio and was not there") {
		t.Error(doubt)
	}
	b.Runs = b.Runs[:2]
	if doubt := b.Doubt(b.Runs[0].Factors); !strings.Contains(doubt, "pin at least 3 repetitions") {
		t.Error(doubt)
	}
	// A run of the same name that is another one, and one that is gone.
	if err := os.RemoveAll(filepath.Join(runs, "b")); err != nil {
		t.Fatal(err)
	}
	if b := baseline.Of(runs, "oltp"); b.Missing == "" {
		t.Errorf("%+v", b)
	}
	bundle(t, runs, "b", func(_ *result.Manifest, s *result.Summary) { s.Results[0].Stats[0].Mean = 1 })
	if b := baseline.Of(runs, "oltp"); b.Missing != "run b is not the one that was pinned: its seal differs" {
		t.Errorf("%+v", b)
	}
	for _, want := range []bool{true, false} {
		if found, err := baseline.Unset(runs, "oltp"); found != want || err != nil {
			t.Error(found, err)
		}
	}
}

// TestPinsTogether: who pins at the same time loses nothing.
func TestPinsTogether(t *testing.T) {
	runs := t.TempDir()
	const scenarios = 12
	for i := range scenarios {
		bundle(t, runs, fmt.Sprint("run", i), func(m *result.Manifest, _ *result.Summary) { m.Scenario.Name = fmt.Sprint("scenario", i) })
	}
	var pinning sync.WaitGroup
	for i := range scenarios {
		pinning.Go(func() {
			if _, err := baseline.Set(runs, []string{fmt.Sprint("run", i)}, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	pinning.Wait()
	if pins, err := baseline.Read(runs); err != nil || len(pins.Baselines) != scenarios {
		t.Errorf("%d baselines, %v, want %d", len(pins.Baselines), err, scenarios)
	}
}

// TestDamagedPins: damage of the file is an error with its path, and no run outside the folder is read.
func TestDamagedPins(t *testing.T) {
	runs := t.TempDir()
	path := filepath.Join(runs, "baselines.json")
	for text, want := range map[string]string{
		"{": "unexpected end", "[]": "cannot unmarshal", `{"baselines_format": 9}`: "format 9 is newer",
		`{"baselines": {"oltp": {"runs": []}}}`: "has 0 runs", `{"baselines": {"oltp": {"runs": [{"run": "../x"}]}}}`: "not a folder of the runs folder",
		`{"baselines": {"oltp": {"runs": [{"run": ".."}]}}}`: "not a folder of the runs folder",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := baseline.Read(runs); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
		if b := baseline.Of(runs, "oltp"); b.Missing == "" {
			t.Errorf("%s: used", text)
		}
	}
}
