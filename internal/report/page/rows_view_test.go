package page

import (
	"fmt"
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// rows has the rows of a result with so many windows, kinds and series, whose means rise from the first to the last.
func rows(windows, series int, kinds ...string) (list []document.Statistic) {
	for w := range windows {
		name := ""
		if w > 0 {
			name = fmt.Sprint("window ", w)
		}
		for _, kind := range kinds {
			for s := range series {
				list = append(list, document.Statistic{Window: name, Kind: kind, Series: fmt.Sprint(s), Count: 1, Distribution: result.Distribution{Mean: result.Number(s)}})
			}
		}
	}
	return list
}

// TestWindowsOf: few rows are all there; of many, those of the whole result and of the extremes.
func TestWindowsOf(t *testing.T) {
	for _, c := range []struct {
		name                  string
		rows                  []document.Statistic
		windows, first, other int
	}{
		{"few", rows(4, 100, ""), 4, 100, 100},
		{"many series", rows(20, 100, ""), 20, 100, 3},
		{"two kinds", rows(30, 100, "service", "response"), 30, 200, 6},
		{"more windows", rows(120, 100, "service", "response"), 101, 200, 2},
		{"one series in many windows", rows(1000, 1, ""), 400, 1, 1},
	} {
		windows, left := windowsOf(c.rows)
		if len(windows) != c.windows || len(windows[0].Rows) != c.first || len(windows[1].Rows) != c.other || (left == "") != (countRows(windows) == len(c.rows)) {
			t.Errorf("%s: %d windows of %d, %d … rows, want %d of %d, %d; left out: %q", c.name, len(windows), len(windows[0].Rows), len(windows[1].Rows), c.windows, c.first, c.other, left)
		}
	}
	empty := rows(4, 2, "")
	for i := range empty {
		empty[i].Count = 0
	}
	if windows, left := windowsOf(empty); len(windows) > 0 || left != noStatistics {
		t.Errorf("rows without values: %d windows, %q", len(windows), left)
	}
	many := rows(20, 100, "")
	many[100].Mean = result.Number(math.NaN())
	windows, _ := windowsOf(many)
	for i, want := range []result.Number{1, 50, 99} {
		if got := windows[1].Rows[i].Mean; got != want {
			t.Errorf("row %d of the second window has a mean of %v, want %v", i, got, want)
		}
	}
}
