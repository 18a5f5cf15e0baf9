package compare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// dated gives runs a day each.
func dated(runs []*document.Run) []*document.Run {
	for i, r := range runs {
		r.Manifest.Created = time.Date(2026, 1, 1+i, 6, 0, 0, 0, time.UTC)
	}
	return runs
}

// TestTrendErrorRates: at most 5 % of all stable histories have a change; one of 10 % is found within two runs in at least 95 %.
func TestTrendErrorRates(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, histories int) {
		const seed = 41
		s := newSource(seed, 0.02)
		stable, found := 0, 0
		for range histories {
			trend, err := compare.OfHistory(s.runs(15, 1), "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(trend.Levels) > 1 {
				stable++
			}
			trend, err = compare.OfHistory(append(s.runs(12, 1), s.runs(4, 0.9)...), "iops", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, level := range trend.Levels[1:] {
				if level.From >= 10 && level.From <= 14 {
					found++
					break
				}
			}
		}
		t.Logf("%d of %d stable histories changed; %d of %d changes found within two runs", stable, histories, found, histories)
		if stable > histories*5/100 || found < histories*95/100 {
			t.Errorf("seed %d", seed)
		}
	})
}

func TestTrendNamesWhatChanged(t *testing.T) {
	s := newSource(42, 0.01)
	runs := dated(append(s.runs(8, 1), s.runs(4, 0.7)...))
	for _, r := range runs[8:] {
		r.Manifest.Versions = map[string]string{"kernel": "7.1"}
	}
	trend, err := compare.OfHistory(runs, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(trend.Levels) != 2 || trend.Levels[1].From != 8 || trend.Points[8].Level != 1 ||
		!strings.HasPrefix(trend.Headline, "IOPS, mean changed by −") ||
		!strings.Contains(trend.Headline, fmt.Sprintf("with run %s of 2026-01-09, whose version of kernel: – → 7.1.", runs[8].Manifest.Run)) {
		t.Errorf("%s\n%+v", trend.Headline, trend.Levels)
	}
	if band := trend.Levels[0]; band.Low >= band.Mean || band.High <= band.Mean || float64(band.High/band.Low) > 1.2 {
		t.Errorf("%+v", band)
	}
}

func TestTrendLeavesOut(t *testing.T) {
	s := newSource(43, 0.01)
	runs := s.runs(9, 1)
	runs[0].Summary.Ended = result.EndedFailed
	runs[1].Summary.Validity = result.Invalid
	runs[2].Manifest.Scenario.Hash = "two"
	runs[3].Manifest.Rehearsal = &result.Rehearsal{TimeFactor: 0.5}
	runs[4].Summary.Results[0].Stats[0].Mean = 0
	trend, err := compare.OfHistory(runs, "iops", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(trend.Points) != 4 || len(trend.LeftOut) != 5 || !strings.HasPrefix(trend.Headline, "Too few runs to find a change of IOPS, mean: 4 of 8.") {
		t.Errorf("%s\n%q", trend.Headline, trend.LeftOut)
	}
	for _, text := range []string{"bandwidth", "p98", `p99 of "nothing"`} {
		if _, err := compare.OfHistory(runs, text, nil); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
	if _, err := compare.OfHistory(nil, "", nil); err == nil {
		t.Error("no runs: accepted")
	}
}
